import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import type { QueryDocument } from '../../../src/server/console/documents.ts'
import { path, post } from '../api.ts'
import { Command } from '../components/command.tsx'
import { ErrorMessage } from '../components/query-states.tsx'
import { Value } from '../components/value.tsx'
import { pluralize } from '../format.ts'
import { ExactNumber } from '../exact-json.ts'
import { AsOfControl } from './toolbar.tsx'
import type { View } from './view-state.ts'

/** A read-only SQL editor. The server limits what a statement reads, and its time and rows. */
export function SqlPanel({
  database,
  table,
  columns,
  canQuery,
  view,
  onChange,
}: {
  database: string
  table: string
  columns: readonly string[]
  canQuery: boolean
  view: View
  onChange: (change: Partial<View>) => void
}) {
  const [sql, setSql] = useState(view.sql === '' ? buildSampleSql(table, columns) : view.sql)
  const run = useMutation({
    mutationFn: async (plan: boolean) => {
      const startedAt = performance.now()
      const body = { sql, plan, ...(view.asOf !== '' && { asOf: view.asOf }) }
      const { data } = await post<{ data: QueryDocument }>(path`/console/api/databases/${database}/query`, body)
      return { ...data, isPlan: plan, ms: Math.round(performance.now() - startedAt) }
    },
  })
  const start = (plan: boolean): void => {
    onChange({ sql })
    run.mutate(plan)
  }
  const command = <Command label="Command" text={`npx tidemark query "select * from ${table} limit 20"`} />
  if (!canQuery)
    return (
      <section aria-label="SQL" className="sql">
        <p className="quiet">This server cannot run SQL for the console. On the machine of the store:</p>
        {command}
      </section>
    )
  return (
    <section aria-label="SQL" className="sql">
      <textarea
        aria-label="SQL statement"
        spellCheck={false}
        autoComplete="off"
        autoCapitalize="off"
        rows={Math.min(16, Math.max(5, sql.split('\n').length + 1))}
        maxLength={20_000}
        value={sql}
        onChange={(event) => setSql(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) start(false)
        }}
      />
      <div className="bar">
        <button
          type="button"
          className="primary"
          disabled={run.isPending || sql.trim() === ''}
          onClick={() => start(false)}
        >
          {run.isPending ? 'Running…' : 'Run'}
        </button>
        <button type="button" disabled={run.isPending || sql.trim() === ''} onClick={() => start(true)}>
          Show plan
        </button>
        <AsOfControl asOf={view.asOf} onChange={(asOf) => onChange({ asOf })} />
        <span className="quiet">One SELECT, read-only, up to 10 s and 1,000 rows. Ctrl+Enter runs it.</span>
      </div>
      {run.error !== null && <ErrorMessage error={run.error} />}
      {run.data !== undefined && run.error === null && <Answer answer={run.data} />}
    </section>
  )
}

function Answer({ answer }: { answer: QueryDocument & { readonly isPlan: boolean; readonly ms: number } }) {
  const { columns, rows, truncated, isPlan, ms } = answer
  if (isPlan)
    return (
      <pre className="sql-plan" tabIndex={0} aria-label="Plan">
        <code>{rows.map((row) => row.map(String).join('  ')).join('\n')}</code>
      </pre>
    )
  const isNumber = columns.map(
    (_, at) => rows.some((row) => row[at] !== null) && rows.every((row) => row[at] === null || isNumeric(row[at])),
  )
  return (
    <>
      <p className="quiet" role="status">
        {truncated
          ? `The first ${pluralize(rows.length, 'row')}; there are more. Add conditions or a limit.`
          : pluralize(rows.length, 'row')}{' '}
        · {ms} ms
      </p>
      <div className="scroll sql-rows" role="region" aria-label="Result" tabIndex={0}>
        <table className="records">
          <thead>
            <tr>
              {columns.map((name, at) => (
                <th key={at} scope="col" className={isNumber[at] === true ? 'number' : ''}>
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((row, index) => (
              <tr key={index}>
                {row.map((value, at) => (
                  <td key={at} className={isNumber[at] === true ? 'number' : ''}>
                    <Value value={value} />
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  )
}

function isNumeric(value: unknown): boolean {
  return typeof value === 'number' || value instanceof ExactNumber
}

function buildSampleSql(table: string, columns: readonly string[]): string {
  const names = columns
    .slice(0, 6)
    .map((name) => (/^[a-z_][a-z0-9_]*$/.test(name) ? name : `"${name.replaceAll('"', '""')}"`))
  return `select ${['_key', ...names].join(', ')}\nfrom ${table}\nlimit 100`
}
