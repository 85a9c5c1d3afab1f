import { useQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { Link } from 'wouter'
import type { ConnectionDocument, DestinationDocument } from '../../../src/server/console/documents.ts'
import { get } from '../api.ts'
import { pluralize } from '../format.ts'
import { useSession } from '../session.tsx'

const POLL_MS = 15_000
const QUARANTINE_MAX = 100

/** Problems that belong to no sync, with a link to their page. A caller without the scope is not asked. */
export function OtherTrouble() {
  const { hasScope } = useSession()
  const destinations = useList<DestinationDocument>('/api/destinations', hasScope('sync:read'))
  const connections = useList<ConnectionDocument>('/api/connections', hasScope('connections:read'))
  const quarantine = useList(`/api/quarantine?limit=${QUARANTINE_MAX}`, hasScope('sync:read'))
  const failing = destinations.filter(({ health }) => health === 'ERROR' || health === 'WARNING').length
  const refused = connections.filter(({ status }) => status === 'needs_reauthorization').length
  const links: ReactNode[] = [
    ...(failing > 0
      ? [
          <Link key="destinations" href="/destinations">
            {pluralize(failing, 'destination')} failing
          </Link>,
        ]
      : []),
    ...(refused > 0
      ? [
          <Link key="connections" href="/connections">
            {pluralize(refused, 'connection')} to authorize
          </Link>,
        ]
      : []),
    ...(quarantine.length > 0
      ? [
          <Link key="quarantine" href="/quarantine">
            {quarantine.length >= QUARANTINE_MAX
              ? `${QUARANTINE_MAX}+ records`
              : pluralize(quarantine.length, 'record')}{' '}
            in quarantine
          </Link>,
        ]
      : []),
  ]
  return links.length === 0 ? null : <p className="other-trouble">{links}</p>
}

function useList<Item>(path: string, isAllowed: boolean): readonly Item[] {
  const list = useQuery({
    queryKey: ['trouble', path],
    queryFn: ({ signal }) => get<{ data: Item[] }>(path, signal),
    refetchInterval: POLL_MS,
    enabled: isAllowed,
  })
  return list.data?.data ?? []
}
