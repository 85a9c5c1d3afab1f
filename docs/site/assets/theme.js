// In the head, so that the page is painted in the chosen theme.
const theme = localStorage.getItem('tidemark-docs-theme')
if (theme !== null) document.documentElement.dataset.theme = theme
