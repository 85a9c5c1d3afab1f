// Before the first paint, so that a chosen theme does not flash. A file of its own: nothing is written into the page.
try {
  const theme = localStorage.getItem('tidemark.theme')
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme
} catch {
  // A browser that keeps nothing follows the system.
}
