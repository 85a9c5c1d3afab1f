import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Link } from 'wouter'
import type { QuarantineDocument } from '../../../src/server/console/documents.ts'
import { get, path } from '../api.ts'
import { DataTable } from '../components/data-table.tsx'
import { Empty, Shown } from '../components/states.tsx'
import { Moment } from '../components/time.tsx'

export function QuarantinePage() {
  const [text, setText] = useState('')
  const asked = useQuery({ queryKey: ['quarantine'], queryFn: ({ signal }) => get<{ data: QuarantineDocument[] }>('/api/quarantine?limit=200', signal), refetchInterval: 10_000 })
  const wanted = text.trim().toLowerCase()
  return (
    <>
      <div className="title-bar">
        <div><h1>Quarantine</h1><p className="quiet">Records that could not be landed, with the reason. Everything around them did.</p></div>
        {(asked.data?.data.length ?? 0) > 0 && <input type="search" placeholder="Search  /" aria-label="Search the quarantine" value={text} onChange={(event) => setText(event.target.value)} />}
      </div>
      <Shown of={asked}>
        {({ data }) => data.length === 0 ? <Empty title="Nothing is in quarantine">Every record that came could be landed.</Empty> : (
          <DataTable
            label="Quarantine, newest first" keyOf={({ id }) => id} rows={data.filter((entry) => wanted === '' || JSON.stringify(entry).toLowerCase().includes(wanted))}
            columns={[
              { title: 'When', cell: ({ at }) => <Moment at={at} /> },
              { title: 'Sync', cell: ({ worker, sync, cycle, page }) => <><Link href={path`/syncs/${worker}/${sync}`}>{sync}</Link> <span className="quiet">cycle {cycle}, page {page}</span></> },
              { title: 'Database', cell: ({ database }) => database },
              { title: 'Key', cell: ({ key }) => key ?? <span className="quiet">none</span> },
              { title: 'Why', cell: ({ code, message }) => <><span className="bad">{code}</span> {message}</> },
              { title: 'Record', isWide: true, cell: ({ text: record }) => <pre className="state" tabIndex={0} aria-label="The record"><code>{record.slice(0, 2_000)}</code></pre> },
            ]}
          />
        )}
      </Shown>
    </>
  )
}
