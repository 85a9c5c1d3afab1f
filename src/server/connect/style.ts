/** The style of the connect page, in light and dark. */
export const PAGE_STYLE = `:root {
  color-scheme: light dark;
  --page: #f4f5f7; --card: #ffffff; --text: #1b1f24; --muted: #57606a; --line: #d0d7de;
  --accent: #0b5cad; --on-accent: #ffffff; --bad: #b3261e; --bad-page: #fdecea;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #0d1117; --card: #161b22; --text: #e6edf3; --muted: #9da7b1; --line: #3d444d;
    --accent: #79b8ff; --on-accent: #0d1117; --bad: #ffb4ab; --bad-page: #3b1513;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text); font: 16px/1.5 system-ui, sans-serif; }
main {
  max-width: 30rem; margin: 8vh auto; padding: 2rem; background: var(--card);
  border: 1px solid var(--line); border-radius: 12px;
}
@media (max-width: 32rem) { main { margin: 0; min-height: 100vh; border: 0; border-radius: 0; padding: 1.5rem; } }
h1 { margin: 0 0 0.5rem; font-size: 1.4rem; line-height: 1.3; }
p, ol { margin: 0 0 1rem; overflow-wrap: anywhere; }
ol { padding-left: 1.25rem; }
li { margin-bottom: 0.4rem; }
.muted { color: var(--muted); font-size: 0.9rem; }
.field { margin-bottom: 1rem; }
label { display: block; font-weight: 600; margin-bottom: 0.25rem; }
input {
  width: 100%; padding: 0.6rem 0.75rem; font: inherit; color: inherit; background: var(--page);
  border: 1px solid var(--muted); border-radius: 8px;
}
input[aria-invalid='true'] { border-color: var(--bad); }
.error { color: var(--bad); font-size: 0.9rem; margin: 0.25rem 0 0; }
.failure { background: var(--bad-page); color: var(--bad); padding: 0.75rem 1rem; border-radius: 8px; }
button {
  width: 100%; padding: 0.75rem; font: inherit; font-weight: 600; color: var(--on-accent);
  background: var(--accent); border: 0; border-radius: 8px; cursor: pointer;
}
a { color: var(--accent); }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
.leave { display: inline-block; margin-top: 1rem; }
`
