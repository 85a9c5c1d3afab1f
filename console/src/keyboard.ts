import { useEffect } from 'react'

/** Ignored while an input has the focus. */
export function useShortcuts(keys: Readonly<Record<string, () => void>>): void {
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent): void => {
      const target = event.target as HTMLElement
      if (
        event.ctrlKey ||
        event.metaKey ||
        event.altKey ||
        target.closest('input, textarea, select, dialog, [contenteditable]') !== null
      )
        return
      const action = keys[event.key]
      if (action === undefined) return
      event.preventDefault()
      action()
    }
    addEventListener('keydown', onKeyDown)
    return () => removeEventListener('keydown', onKeyDown)
  })
}

export function focusSearch(): void {
  document.querySelector<HTMLInputElement>('input[type=search]')?.focus()
}
