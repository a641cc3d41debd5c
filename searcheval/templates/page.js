
(() => {
  const button = document.getElementById("show-code");
  if (button) {
    button.hidden = false;
    button.addEventListener("click", () => {
      const open = button.getAttribute("aria-pressed") !== "true";
      for (const code of document.querySelectorAll("details.code")) code.open = open;
      button.setAttribute("aria-pressed", String(open));
      button.textContent = open ? "Hide all code" : "Show all code";
    });
  }
  const links = new Map([...document.querySelectorAll(".toc.side a")].map(a => [decodeURIComponent(a.hash.slice(1)), a]));
  const heads = [...document.querySelectorAll("main h2[id], main h3[id]")].filter(h => links.has(h.id));
  let current = null;
  const mark = () => {
    const head = heads.filter(h => h.getBoundingClientRect().top < 120).pop();
    const link = head ? links.get(head.id) : null;
    if (link === current) return;
    if (current) current.removeAttribute("aria-current");
    if (link) link.setAttribute("aria-current", "true");
    current = link;
  };
  if (heads.length) addEventListener("scroll", mark, {passive: true});
})();
