import { useLayoutEffect, useState, type RefObject } from 'react'

const SPARE_ROWS = 6

interface VisibleRows {
  readonly from: number
  readonly to: number
  readonly rowHeight: number
}

/** Virtual list of rows with equal height: only the visible rows are rendered. */
export function useVisibleRows(list: RefObject<HTMLElement | null>, count: number): VisibleRows {
  const [visible, setVisible] = useState<VisibleRows>({ from: 0, to: 30, rowHeight: 64 })
  useLayoutEffect(() => {
    const update = (): void => {
      if (list.current === null) return
      // The height depends on the width and is set in the style sheet.
      const rowHeight = Number.parseFloat(getComputedStyle(list.current).getPropertyValue('--row-height')) || 64
      const above = -list.current.getBoundingClientRect().top
      const from = Math.max(0, Math.floor(above / rowHeight) - SPARE_ROWS)
      const to = Math.min(count, Math.ceil((above + innerHeight) / rowHeight) + SPARE_ROWS)
      setVisible((before) =>
        before.from === from && before.to === to && before.rowHeight === rowHeight ? before : { from, to, rowHeight },
      )
    }
    update()
    addEventListener('scroll', update, { passive: true })
    addEventListener('resize', update)
    return () => {
      removeEventListener('scroll', update)
      removeEventListener('resize', update)
    }
  }, [list, count])
  return { ...visible, to: Math.min(visible.to, count) }
}
