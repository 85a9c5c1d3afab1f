import { useState } from 'react'

const NEXT = { system: 'light', light: 'dark', dark: 'system' } as const
const SIGN = { system: '◐', light: '☀', dark: '☾' } as const
type Theme = keyof typeof NEXT

export function ThemeSwitch() {
  const [theme, setTheme] = useState<Theme>(() => (document.documentElement.dataset['theme'] as Theme | undefined) ?? 'system')
  const turn = (): void => {
    const next = NEXT[theme]
    setTheme(next)
    if (next === 'system') delete document.documentElement.dataset['theme']
    else document.documentElement.dataset['theme'] = next
    try {
      if (next === 'system') localStorage.removeItem('tidemark.theme')
      else localStorage.setItem('tidemark.theme', next)
    } catch {
      // For this page it holds all the same.
    }
    // Charts are painted with the colours of their moment.
    dispatchEvent(new Event('tidemark-theme'))
  }
  return <button type="button" className="icon-button" onClick={turn} aria-label={`Theme: ${theme}. Switch to ${NEXT[theme]}.`} title={`Theme: ${theme}`}>{SIGN[theme]}</button>
}
