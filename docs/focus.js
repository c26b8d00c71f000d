// What scrolls can be reached by keyboard: where no pointer hovers, the theme takes that from its code blocks.
const reach = () =>
  document.querySelectorAll("pre > code, .md-typeset__scrollwrap").forEach((part) => {
    if (part.scrollWidth > part.clientWidth && part.tabIndex < 0) part.tabIndex = 0;
  });
for (const event of ["load", "resize"]) addEventListener(event, () => setTimeout(reach, 300));
new MutationObserver(reach).observe(document.documentElement, { subtree: true, attributeFilter: ["tabindex"] });
