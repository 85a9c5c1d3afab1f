import { useLayoutEffect, useRef, useState } from 'react'
import { Link } from 'wouter'
import type { RowDocument } from '../../../src/server/console/documents.ts'
import { path } from '../api.ts'
import { Timestamp } from '../components/time.tsx'
import { Value } from '../components/value.tsx'
import { formatKey } from '../format.ts'
import { isNumeric, widthOf, type ExplorerColumn } from './columns.ts'
import { rowAt, type PagesState, type RowPages } from './row-pages.ts'
import { nextOrder } from './view-state.ts'

const ROW_HEIGHT = 36
const SPARE_ROWS = 12
const KEY_WIDTH = 190
const CHANGED_WIDTH = 150

export interface Cell {
  readonly field: string
  readonly row: RowDocument
}

/** Renders only the rows in view: a table may have millions. */
export function RowsTable({
  database,
  columns,
  order,
  pages,
  state,
  canSort,
  onOrder,
  onColumn,
  onCell,
}: {
  database: string
  columns: readonly ExplorerColumn[]
  order: string
  pages: RowPages
  state: PagesState
  canSort: boolean
  onOrder: (order: string) => void
  onColumn: (column: ExplorerColumn) => void
  onCell: (cell: Cell) => void
}) {
  const scroll = useRef<HTMLDivElement>(null)
  const [{ from, to }, setVisible] = useState({ from: 0, to: 50 })
  const { count } = state
  useLayoutEffect(() => {
    const element = scroll.current
    if (element === null) return undefined
    const update = (): void => {
      const first = Math.max(0, Math.floor(element.scrollTop / ROW_HEIGHT) - SPARE_ROWS)
      const last = Math.ceil((element.scrollTop + element.clientHeight) / ROW_HEIGHT) + SPARE_ROWS
      setVisible((before) => (before.from === first && before.to === last ? before : { from: first, to: last }))
      pages.show(first, last)
    }
    update()
    element.addEventListener('scroll', update, { passive: true })
    addEventListener('resize', update)
    return () => {
      element.removeEventListener('scroll', update)
      removeEventListener('resize', update)
    }
  }, [pages, count])
  useLayoutEffect(() => {
    scroll.current?.scrollTo({ top: 0 })
  }, [pages])
  const shown = Array.from({ length: Math.max(0, Math.min(to, count) - from) }, (_, at) => from + at)
  const width = columns.reduce((sum, column) => sum + widthOf(column), KEY_WIDTH + CHANGED_WIDTH)
  return (
    <div className="grid-scroll" role="region" aria-label="Rows" tabIndex={0} ref={scroll}>
      <table className="grid" aria-rowcount={state.next === null ? count + 1 : -1} style={{ width }}>
        <colgroup>
          <col style={{ width: KEY_WIDTH }} />
          {columns.map((column) => (
            <col key={column.field} style={{ width: widthOf(column) }} />
          ))}
          <col style={{ width: CHANGED_WIDTH }} />
        </colgroup>
        <thead>
          <tr aria-rowindex={1}>
            <Header title="key" id="key" order={order} canSort={canSort} onOrder={onOrder} />
            {columns.map((column) => (
              <Header
                key={column.field}
                title={column.field}
                type={column.type}
                id={`field:${column.field}`}
                order={order}
                canSort={column.isUsable}
                onOrder={onOrder}
                {...(column.isUsable && { onMore: () => onColumn(column) })}
              />
            ))}
            <Header title="changed" id="changed" order={order} canSort={canSort} onOrder={onOrder} />
          </tr>
        </thead>
        <tbody>
          <Spacer rows={from} />
          {shown.map((index) => {
            const row = rowAt(state, index)
            if (row === null) return <Spacer key={index} rows={1} />
            return (
              <tr key={row.key} aria-rowindex={index + 2}>
                <th scope="row">
                  <Link href={path`/databases/${database}/${row.key}`}>{formatKey(row.key)}</Link>
                </th>
                {columns.map(({ field, type }) => (
                  <td key={field} className={isNumeric(type) ? 'number' : ''} onClick={() => onCell({ field, row })}>
                    <Value value={row.record[field]} />
                  </td>
                ))}
                <td className="quiet">
                  <Timestamp at={row.committedAt} />
                </td>
              </tr>
            )
          })}
          <Spacer rows={Math.max(0, count - Math.max(to, from))} />
        </tbody>
      </table>
    </div>
  )
}

function Spacer({ rows }: { rows: number }) {
  return rows === 0 ? null : <tr aria-hidden="true" style={{ height: rows * ROW_HEIGHT }} />
}

function Header({
  title,
  type,
  id,
  order,
  canSort,
  onOrder,
  onMore,
}: {
  title: string
  type?: string
  id: string
  order: string
  canSort: boolean
  onOrder: (order: string) => void
  onMore?: () => void
}) {
  const sort = order === id ? 'ascending' : order === `-${id}` ? 'descending' : undefined
  const label = (
    <span className="clip">
      <span className="grid-name">{title}</span> {type !== undefined && <span className="kind">{type}</span>}
    </span>
  )
  return (
    <th scope="col" title={title} aria-sort={sort}>
      <div className="grid-head">
        {canSort ? (
          <button type="button" className="grid-sort" onClick={() => onOrder(nextOrder(order, id))}>
            {label}
            <span className="grid-arrow" aria-hidden="true">
              {sort === undefined ? '' : sort === 'ascending' ? '↑' : '↓'}
            </span>
          </button>
        ) : (
          <span className="grid-sort">{label}</span>
        )}
        {onMore !== undefined && (
          <button type="button" className="grid-more" aria-label={`Filter and statistics of ${title}`} onClick={onMore}>
            <svg viewBox="0 0 16 16" aria-hidden="true">
              <path d="M2 4h12M4.500 8h7M7 12h2" />
            </svg>
          </button>
        )}
      </div>
    </th>
  )
}
