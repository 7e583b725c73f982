// Light or dark as it was chosen, before anything is drawn.
try {
  const kept = localStorage.getItem("aec-theme");
  if (kept === "light" || kept === "dark") document.documentElement.dataset.theme = kept;
} catch { /* the system decides */ }
document.documentElement.dataset.script = "yes";
