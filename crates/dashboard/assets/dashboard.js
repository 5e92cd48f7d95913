// Adds what a page without JavaScript cannot do: times of the visitor's zone, confirmations, copy buttons, live states.
document.documentElement.classList.add("js");

const language = document.documentElement.dataset.language || undefined;

function formatter(options) {
  try {
    return new Intl.DateTimeFormat(language, options);
  } catch {
    return new Intl.DateTimeFormat(undefined, options);
  }
}

const full = formatter({ dateStyle: "medium", timeStyle: "short" });

function showTimes(root) {
  for (const element of root.querySelectorAll("time[datetime]")) {
    const at = new Date(element.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    element.title = element.textContent;
    element.textContent = full.format(at);
  }
}

function addCopyButtons(root) {
  for (const button of root.querySelectorAll("[data-copy]")) {
    button.hidden = !navigator.clipboard;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(button.dataset.copy);
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
  }
}

function enhance(root) {
  showTimes(root);
  addCopyButtons(root);
}

document.addEventListener("submit", (event) => {
  const question = event.target.dataset.confirm;
  if (question && !confirm(question)) event.preventDefault();
});

for (const form of document.querySelectorAll("[data-submit-on-change]")) {
  form.addEventListener("change", () => form.requestSubmit());
}

for (const input of document.querySelectorAll("[data-must-be]")) {
  const button = input.form.querySelector("button");
  const check = () => { button.disabled = input.value.trim() !== input.dataset.mustBe; };
  input.addEventListener("input", check);
  check();
}

// The login asks for a code without losing the password that was typed.
for (const form of document.querySelectorAll("[data-login]")) {
  const code = form.querySelector("[data-code]");
  form.addEventListener("submit", async (event) => {
    if (!code.hidden) return;
    event.preventDefault();
    const body = new URLSearchParams(new FormData(form));
    const answer = await fetch(form.action, { method: "POST", body, redirect: "follow" }).catch(() => null);
    if (answer?.headers.get("x-two-factor") === "required") {
      code.hidden = false;
      code.querySelector("input").focus();
    } else if (answer?.redirected) {
      location.assign(answer.url);
    } else if (answer) {
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      form.closest(".card").querySelector(".error")?.remove();
      const error = page.querySelector(".error");
      if (error) form.before(document.adoptNode(error));
      form.querySelector("[name=password]").select();
    } else {
      form.submit();
    }
  });
}

// Parts with data-live follow the server: often while something is in progress, seldom otherwise.
const live = document.querySelectorAll("[data-live][id]");

function isBusy() {
  return document.querySelector("[data-busy]") !== null;
}

// The version that the live parts show; none at first.
let seen = '"none"';

async function refresh() {
  const headers = { accept: "text/html", "if-none-match": seen };
  const answer = await fetch(location.href, { headers }).catch(() => null);
  // Without a change, the answer has status 304 and no contents.
  if (!answer?.ok || answer.redirected) return;
  let isWhole = true;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const old of document.querySelectorAll("[data-live][id]")) {
    const part = page.getElementById(old.id);
    if (!part) continue;
    if (old.contains(document.activeElement)) {
      isWhole = false;
      continue;
    }
    showTimes(part);
    if (part.innerHTML === old.dataset.seen) continue;
    const contents = part.innerHTML;
    const next = document.adoptNode(part);
    next.dataset.seen = contents;
    old.replaceWith(next);
    addCopyButtons(next);
  }
  if (isWhole) seen = answer.headers.get("etag") ?? seen;
}

function watch() {
  setTimeout(async () => {
    if (!document.hidden) await refresh();
    watch();
  }, isBusy() ? 1500 : 10000);
}

enhance(document);
if (live.length > 0) watch();

// On a narrow screen, the current page may be beyond the edge of a navigation.
for (const current of document.querySelectorAll("nav [aria-current]")) {
  const nav = current.closest("nav");
  nav.scrollLeft = current.offsetLeft - nav.offsetLeft - (nav.clientWidth - current.offsetWidth) / 2;
}

// The API call that a form is the same as.
const call = document.querySelector("[data-call]");
if (call) {
  const form = call.closest("form");
  const numbers = new Set(["port"]);
  const show = () => {
    const body = {};
    for (const [name, value] of new FormData(form)) {
      if (name === "form_token" || name === "auto_deploy" || value === "") continue;
      if (name === "environment_variables") {
        const pairs = value.split("\n").map((line) => line.trim()).filter((line) => line && !line.startsWith("#"));
        body[name] = Object.fromEntries(pairs.map((line) => [line.split("=")[0], "…"]));
      } else {
        body[name] = numbers.has(name) ? Number(value) : value;
      }
    }
    body.auto_deploy = form.elements.auto_deploy.checked;
    call.querySelector("pre").textContent = `POST /api/v1/deploy/application\n${JSON.stringify(body, null, 2)}`;
  };
  form.addEventListener("input", show);
  show();
  call.hidden = false;
}

const log = document.querySelector(".log[data-stream]");
if (log) (await import("./log.js")).follow(log);
