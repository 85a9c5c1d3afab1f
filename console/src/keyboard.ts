import { useEffect } from 'react'

/** Ignored while an input has the focus. */
export function useShortcuts(keys: Readonly<Record<string, () => void>>): void {
  useEffect(() => {
    const listen = (event: KeyboardEvent): void => {
      const target = event.target as HTMLElement
      if (event.ctrlKey || event.metaKey || event.altKey || target.closest('input, textarea, select, dialog, [contenteditable]') !== null) return
      const act = keys[event.key]
      if (act === undefined) return
      event.preventDefault()
      act()
    }
    addEventListener('keydown', listen)
    return () => removeEventListener('keydown', listen)
  })
}

export function focusSearch(): void {
  document.querySelector<HTMLInputElement>('input[type=search]')?.focus()
}
