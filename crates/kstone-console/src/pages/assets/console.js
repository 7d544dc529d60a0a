// Keeps parts of a page fresh while somebody looks at it. Without it every page works as it was sent.
(() => {
  "use strict";
  const SLOWEST_MS = 60000;

  const watch = (part) => {
    const every = Number(part.dataset.every) || 2000;
    let wait = every;

    const refresh = async () => {
      // Who has opened a menu or is about to press something in it is not to lose it.
      const isBusy = document.hidden || part.contains(document.activeElement) || isSelecting(part);
      if (!isBusy) {
        try {
          const answer = await fetch(part.dataset.live, { headers: { accept: "text/html" }, redirect: "error" });
          if (!answer.ok) throw new Error(String(answer.status));
          const open = [...part.querySelectorAll("details[id][open]")].map((it) => it.id);
          part.innerHTML = await answer.text();
          for (const id of open) document.getElementById(id)?.setAttribute("open", "");
          part.classList.remove("stale");
          wait = every;
          const over = answer.headers.get("x-live") === "over";
          if (over) return;
        } catch {
          part.classList.add("stale");
          wait = Math.min(wait * 2, SLOWEST_MS);
        }
      }
      setTimeout(refresh, wait);
    };

    setTimeout(refresh, wait);
  };

  const isSelecting = (part) => {
    const selection = document.getSelection();
    return Boolean(selection && !selection.isCollapsed && part.contains(selection.anchorNode));
  };

  document.querySelectorAll("[data-live]").forEach(watch);
})();
