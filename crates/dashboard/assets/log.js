// Follows a log by server-sent events. A flood does not freeze the page: each frame appends some lines, as one block that
// the browser does not lay out while it is out of sight.
const MOST_LINES = 20000;
const LINES_PER_FRAME = 250;
const LINE_HEIGHT = 24;
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
  let is_over = false;
  let term = "";

  const matches = (element) => term === "" || element.textContent.toLowerCase().includes(term);

  // Shows the lines of a block that match the search, and tells the browser the height that they will have.
  function filter(block) {
    let shown = 0;
    for (const element of block.children) {
      const is_match = matches(element);
      element.classList.toggle("unmatched", !is_match);
      if (is_match) shown += 1;
    }
    block.classList.toggle("unmatched", shown === 0);
    block.style.containIntrinsicHeight = `${shown * LINE_HEIGHT}px`;
  }

  // The output of a build is folded below the line of its step, once there is much of it.
  function target(is_build) {
    if (!is_build) {
      fold = null;
      return log;
    }
    if (fold === null) {
      fold = document.createElement("details");
      fold.open = true;
      fold.append(document.createElement("summary"));
      fold.lines = 0;
      log.append(fold);
    }
    return fold;
  }

  // Appends lines that are all output of a build, or all not.
  function append(next, is_build) {
    const block = document.createElement("div");
    block.className = next.length < 50 ? "block" : "block large";
    block.append(...next.map(row));
    filter(block);
    target(is_build).append(block);
    if (!is_build) return;
    fold.lines += next.length;
    fold.firstChild.textContent = fold.lines === 1 ? "1 line of the build" : `${fold.lines} lines of the build`;
  }

  function closeFolds() {
    const target = location.hash ? document.getElementById(location.hash.slice(1)) : null;
    for (const each of log.querySelectorAll("details")) {
      if (each.lines > 20 && each !== fold && !each.contains(target)) each.open = false;
    }
  }

  function show() {
    if (is_fresh) {
      // The stream begins with the first line; what the server rendered was for browsers without JavaScript.
      log.replaceChildren();
      lines = 0;
      is_fresh = false;
    }
    const next = waiting.splice(0, LINES_PER_FRAME);
    lines += next.length;
    for (let start = 0, end = 1; start < next.length; start = end) {
      const is_build = next[start].l === "build";
      for (end = start + 1; end < next.length && (next[end].l === "build") === is_build;) end += 1;
      append(next.slice(start, end), is_build);
    }
    while (lines > MOST_LINES) {
      const oldest = log.querySelector(".line");
      const block = oldest.closest(".block");
      lines -= block ? block.childElementCount : 1;
      (block ?? oldest).remove();
    }
    if (box.checked) log.scrollTop = log.scrollHeight;
    if (waiting.length > 0) requestAnimationFrame(show);
    else if (is_over) finish();
  }

  function finish() {
    fold = null;
    closeFolds();
    toTarget();
    log.dataset.ended = "";
  }

  function toTarget() {
    const target = location.hash.startsWith("#L") && document.getElementById(location.hash.slice(1));
    if (!target) return;
    box.checked = false;
    target.closest("details")?.setAttribute("open", "");
    target.classList.add("hit");
    target.scrollIntoView({ block: "center" });
  }

  // A browser reconnects by itself, from the last line on, after a broken connection. After an answer with an error,
  // such as that of a proxy while the server restarts, it gives up, and this goes on.
  let seen = "";
  let wait = 1000;

  function connect() {
    const url = new URL(log.dataset.stream, location.href);
    if (seen) url.searchParams.set("after", seen);
    const stream = new EventSource(url);
    stream.addEventListener("open", () => {
      delete log.dataset.broken;
      wait = 1000;
    });
    stream.addEventListener("error", () => {
      log.dataset.broken = "";
      if (stream.readyState !== EventSource.CLOSED) return;
      setTimeout(connect, wait);
      wait = Math.min(2 * wait, 30000);
    });
    stream.addEventListener("message", (event) => {
      seen = event.lastEventId;
      if (waiting.length === 0) requestAnimationFrame(show);
      waiting.push(JSON.parse(event.data));
    });
    stream.addEventListener("end", () => {
      stream.close();
      is_over = true;
      if (waiting.length === 0) finish();
    });
  }

  connect();
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
      for (const block of log.querySelectorAll(".block")) filter(block);
      for (const each of log.querySelectorAll("details")) if (term) each.open = true;
    });
  }
}
