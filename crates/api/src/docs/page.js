"use strict";
const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const search = document.getElementById("search");
const status = document.getElementById("found");
const parts = all("[data-words]");
const links = new Map(all("nav li a").map((link) => [link.hash.slice(1), link]));

function filter() {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  let found = 0;
  for (const part of parts) {
    const fits = words.every((word) => part.dataset.words.includes(word));
    part.hidden = !fits;
    found += fits;
    const link = links.get(part.id);
    if (link) link.parentElement.hidden = !fits;
  }
  for (const group of all("nav [data-group]")) group.hidden = all("li:not([hidden])", group).length === 0;
  status.textContent = words.length ? `${found} found` : "";
}
search.addEventListener("input", filter);
document.addEventListener("keydown", (event) => {
  const typing = /^(INPUT|TEXTAREA)$/.test(event.target.tagName);
  if (event.key === "/" && !typing) { event.preventDefault(); search.focus(); }
  if (event.key === "Escape" && event.target === search) { search.value = ""; filter(); search.blur(); }
});

const seen = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (!entry.isIntersecting) continue;
    for (const link of links.values()) link.removeAttribute("aria-current");
    const link = links.get(entry.target.id);
    if (!link) continue;
    link.setAttribute("aria-current", "true");
    const nav = link.closest("nav"), place = link.getBoundingClientRect(), frame = nav.getBoundingClientRect();
    if (place.top < frame.top || place.bottom > frame.bottom) nav.scrollTop += place.top - frame.top - frame.height / 2;
  }
}, { rootMargin: "0px 0px -75% 0px" });
for (const part of parts) seen.observe(part);

// The token is kept by the input element only: it is gone when the page is.
async function send(form) {
  const output = form.querySelector("pre");
  const value = (name) => form.querySelector(`[name="${name}"]`).value;
  let path = form.dataset.path;
  const query = new URLSearchParams();
  for (const input of all("[data-in]", form)) {
    if (input.dataset.in === "path") path = path.replace(`{${input.name}}`, encodeURIComponent(input.value));
    else if (input.value) query.append(input.name, input.value);
  }
  const headers = {}, token = document.getElementById("token").value.trim();
  if (token) headers.Authorization = `Bearer ${token}`;
  const organization = document.getElementById("organization").value.trim();
  if (organization) headers["X-Organization-Id"] = organization;
  const method = form.dataset.method;
  const body = form.querySelector("textarea") && method !== "GET" ? value("body") : undefined;
  output.hidden = false;
  output.textContent = "…";
  try {
    const response = await fetch(path + (query.size ? `?${query}` : ""), { method, headers, body, credentials: "omit" });
    const text = await response.text();
    let shown = text;
    try { shown = JSON.stringify(JSON.parse(text), null, 2); } catch { /* Not JSON. */ }
    output.textContent = `${response.status} ${response.statusText}\n${shown}`;
  } catch (error) {
    output.textContent = `The request failed: ${error.message}`;
  }
}
document.addEventListener("submit", (event) => { event.preventDefault(); send(event.target); });
