import { useLayoutEffect, useState, type RefObject } from 'react'

const SPARE_PX = 400

interface VisibleRows {
  readonly from: number
  readonly to: number
  readonly rowHeight: number
  readonly headHeight: number
}

/**
 * Virtual list: only the visible rows are rendered. `headsBefore` is the number of group headings before each row; they
 * have a height of their own. Both heights depend on the width and are set in the style sheet.
 */
export function useVisibleRows(list: RefObject<HTMLElement | null>, headsBefore: readonly number[]): VisibleRows {
  const [visible, setVisible] = useState<VisibleRows>({ from: 0, to: 30, rowHeight: 64, headHeight: 40 })
  useLayoutEffect(() => {
    const update = (): void => {
      if (list.current === null) return
      const style = getComputedStyle(list.current)
      const rowHeight = Number.parseFloat(style.getPropertyValue('--row-height')) || 64
      const headHeight = Number.parseFloat(style.getPropertyValue('--head-height')) || 40
      const above = -list.current.getBoundingClientRect().top
      const from = findRow(headsBefore, { rowHeight, headHeight }, above - SPARE_PX)
      const to = Math.min(
        headsBefore.length,
        findRow(headsBefore, { rowHeight, headHeight }, above + innerHeight + SPARE_PX) + 1,
      )
      setVisible((before) =>
        before.from === from && before.to === to && before.rowHeight === rowHeight && before.headHeight === headHeight
          ? before
          : { from, to, rowHeight, headHeight },
      )
    }
    update()
    addEventListener('scroll', update, { passive: true })
    addEventListener('resize', update)
    return () => {
      removeEventListener('scroll', update)
      removeEventListener('resize', update)
    }
  }, [list, headsBefore])
  return { ...visible, to: Math.min(visible.to, headsBefore.length) }
}

type Heights = Pick<VisibleRows, 'rowHeight' | 'headHeight'>

/** The distance of a row from the top of the list. */
export function topOf(headsBefore: readonly number[], at: number, { rowHeight, headHeight }: Heights): number {
  const heads = headsBefore[at] ?? 0
  return heads * headHeight + (at - heads) * rowHeight
}

/** The last row that begins at or before a distance from the top. */
function findRow(headsBefore: readonly number[], heights: Heights, top: number): number {
  let [low, high] = [0, Math.max(0, headsBefore.length - 1)]
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    if (topOf(headsBefore, middle, heights) <= top) low = middle
    else high = middle - 1
  }
  return low
}
