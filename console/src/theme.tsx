import { useState } from 'react'

const NEXT_THEME = { system: 'light', light: 'dark', dark: 'system' } as const
const THEME_ICON = { system: '◐', light: '☀', dark: '☾' } as const
type Theme = keyof typeof NEXT_THEME

export function ThemeSwitch() {
  const [theme, setTheme] = useState<Theme>(
    () => (document.documentElement.dataset['theme'] as Theme | undefined) ?? 'system',
  )
  const switchTheme = (): void => {
    const next = NEXT_THEME[theme]
    setTheme(next)
    if (next === 'system') delete document.documentElement.dataset['theme']
    else document.documentElement.dataset['theme'] = next
    try {
      if (next === 'system') localStorage.removeItem('tidemark.theme')
      else localStorage.setItem('tidemark.theme', next)
    } catch {
      // Storage is unavailable: the theme applies to this page only.
    }
    // Charts read the theme's colours when they are drawn.
    dispatchEvent(new Event('tidemark-theme'))
  }
  return (
    <button
      type="button"
      className="icon-button"
      onClick={switchTheme}
      aria-label={`Theme: ${theme}. Switch to ${NEXT_THEME[theme]}.`}
      title={`Theme: ${theme}`}
    >
      {THEME_ICON[theme]}
    </button>
  )
}
