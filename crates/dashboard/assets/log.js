// Follows a log by server-sent events. Lines are appended once for each frame, so that a flood does not freeze the page.
const MOST_LINES = 20000;
const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit", timeZone: "UTC" });

function row(line) {
  const element = document.createElement("div");
  element.className = `line ${line.l}`;
  element.id = `L${line.n}`;
  const link = document.createElement("a");
  link.href = `#L${line.n}`;
  link.textContent = clock.format(line.t);
  const text = document.createElement("span");
  text.textContent = line.x;
  element.append(link, text);
  return element;
}

export function follow(log) {
  const section = log.closest(".logs");
  const search = section.querySelector("[data-log-search]");
  const following = section.querySelector("[data-log-follow]");
  const box = following.querySelector("input");
  following.hidden = false;
  let waiting = [];
  let lines = log.childElementCount;
  let fold = null;
  let is_fresh = "fresh" in log.dataset;
  let term = "";

  const matches = (element) => term === "" || element.textContent.toLowerCase().includes(term);

  // The output of a build is folded below the line of its step, once there is much of it.
  function place(line) {
    const element = row(line);
    element.classList.toggle("unmatched", !matches(element));
    if (line.l !== "build") {
      fold = null;
      return element;
    }
    if (fold === null) {
      fold = document.createElement("details");
      fold.open = true;
      fold.append(document.createElement("summary"));
    }
    fold.append(element);
    const count = fold.childElementCount - 1;
    fold.firstChild.textContent = count === 1 ? "1 line of the build" : `${count} lines of the build`;
    return fold.isConnected ? null : fold;
  }

  function closeFolds() {
    const target = location.hash && document.getElementById(location.hash.slice(1));
    for (const each of log.querySelectorAll("details")) {
      if (each.childElementCount > 20 && each !== fold && !each.contains(target)) each.open = false;
    }
  }

  function show() {
    if (is_fresh) {
      // The stream begins with the first line; what the server rendered was for browsers without JavaScript.
      log.replaceChildren();
      lines = 0;
      is_fresh = false;
    }
    const parts = document.createDocumentFragment();
    for (const line of waiting) {
      const element = place(line);
      if (element && element.parentNode === null) parts.append(element);
    }
    lines += waiting.length;
    waiting = [];
    log.append(parts);
    while (lines > MOST_LINES && log.firstElementChild) {
      lines -= Math.max(1, log.firstElementChild.querySelectorAll(".line").length);
      log.firstElementChild.remove();
    }
    if (box.checked) log.scrollTop = log.scrollHeight;
  }

  function toTarget() {
    const target = location.hash.startsWith("#L") && document.getElementById(location.hash.slice(1));
    if (!target) return;
    box.checked = false;
    target.closest("details")?.setAttribute("open", "");
    target.classList.add("hit");
    target.scrollIntoView({ block: "center" });
  }

  const stream = new EventSource(log.dataset.stream);
  stream.addEventListener("message", (event) => {
    if (waiting.length === 0) requestAnimationFrame(show);
    waiting.push(JSON.parse(event.data));
  });
  stream.addEventListener("end", () => {
    stream.close();
    requestAnimationFrame(() => {
      fold = null;
      closeFolds();
      toTarget();
      log.dataset.ended = "";
    });
  });
  setTimeout(toTarget, 700);
  addEventListener("hashchange", () => {
    for (const hit of log.querySelectorAll(".hit")) hit.classList.remove("hit");
    toTarget();
  });
  log.addEventListener("wheel", (event) => { if (event.deltaY < 0) box.checked = false; }, { passive: true });

  if (search) {
    search.hidden = false;
    search.addEventListener("input", () => {
      term = search.value.trim().toLowerCase();
      for (const element of log.querySelectorAll(".line")) element.classList.toggle("unmatched", !matches(element));
      for (const each of log.querySelectorAll("details")) if (term) each.open = true;
    });
  }
}
