import { useLayoutEffect, useState, type RefObject } from 'react'

const SPARE_ROWS = 6

interface VisibleRows {
  readonly from: number
  readonly to: number
  readonly rowHeight: number
}

/** Which rows of a long list the window shows, all rows being of one height: only they are in the document. */
export function useVisibleRows(list: RefObject<HTMLElement | null>, count: number): VisibleRows {
  const [visible, setVisible] = useState<VisibleRows>({ from: 0, to: 30, rowHeight: 64 })
  useLayoutEffect(() => {
    const look = (): void => {
      if (list.current === null) return
      // Said by the style sheet, because it differs from width to width.
      const rowHeight = Number.parseFloat(getComputedStyle(list.current).getPropertyValue('--row-height')) || 64
      const above = -list.current.getBoundingClientRect().top
      const from = Math.max(0, Math.floor(above / rowHeight) - SPARE_ROWS)
      const to = Math.min(count, Math.ceil((above + innerHeight) / rowHeight) + SPARE_ROWS)
      setVisible((before) => (before.from === from && before.to === to && before.rowHeight === rowHeight ? before : { from, to, rowHeight }))
    }
    look()
    addEventListener('scroll', look, { passive: true })
    addEventListener('resize', look)
    return () => {
      removeEventListener('scroll', look)
      removeEventListener('resize', look)
    }
  }, [list, count])
  return { ...visible, to: Math.min(visible.to, count) }
}
