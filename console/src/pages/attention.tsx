import { useState } from 'react'
import { Link } from 'wouter'
import { path } from '../api.ts'
import { MessageText } from '../components/query-states.tsx'
import { TimeAgo } from '../components/time.tsx'
import { formatCount, pluralize } from '../format.ts'
import type { Cause } from '../sync-condition.ts'

const CAUSES_SHOWN = 4
const SYNCS_SHOWN = 4

/** The syncs that need attention, by cause, each with its next step. */
export function Attention({
  causes,
  ownTenant,
  onCause,
}: {
  causes: readonly Cause[]
  ownTenant: string
  onCause: (key: string) => void
}) {
  const [isOpen, setIsOpen] = useState(false)
  if (causes.length === 0) return null
  const shown = isOpen ? causes : causes.slice(0, CAUSES_SHOWN)
  return (
    <section aria-label="Needs attention" className="attention">
      <ul>
        {shown.map((cause) => (
          <li key={cause.key} className={`cause cause-${cause.condition}`}>
            <CauseText cause={cause} />
            <div className="cause-syncs">
              <ul aria-label={`Syncs: ${cause.title}`}>
                {cause.syncs.slice(0, SYNCS_SHOWN).map((sync) => (
                  <li key={`${sync.tenant}/${sync.worker}/${sync.sync}`}>
                    {sync.tenant === ownTenant ? (
                      <Link href={path`/syncs/${sync.worker}/${sync.sync}`} title={`${sync.worker} / ${sync.sync}`}>
                        {sync.sync}
                      </Link>
                    ) : (
                      <span title={`${sync.tenant} / ${sync.worker} / ${sync.sync}`}>
                        {sync.tenant}: {sync.sync}
                      </span>
                    )}
                  </li>
                ))}
              </ul>
              {cause.syncs.length > SYNCS_SHOWN && (
                <button type="button" className="small" onClick={() => onCause(cause.key)}>
                  Show all {formatCount(cause.syncs.length)}
                </button>
              )}
            </div>
          </li>
        ))}
      </ul>
      {causes.length > CAUSES_SHOWN && (
        <p className="more">
          <button type="button" className="small" aria-expanded={isOpen} onClick={() => setIsOpen(!isOpen)}>
            {isOpen ? 'Show fewer' : `Show ${pluralize(causes.length - CAUSES_SHOWN, 'more cause')}`}
          </button>
        </p>
      )}
    </section>
  )
}

function CauseText({ cause: { title, message, advice, at, href, syncs, condition } }: { cause: Cause }) {
  return (
    <div className="cause-text">
      <h2>
        <span className="clamped" title={title}>
          {title}
        </span>
        <span className="quiet">
          {pluralize(syncs.length, 'sync')}
          {at !== null && (
            <>
              {' '}
              · {condition === 'late' ? 'late since' : 'last'} <TimeAgo at={at} />
            </>
          )}
        </span>
      </h2>
      {message !== null && (
        <p className="clamped" title={message}>
          {message}
        </p>
      )}
      <p className="next-step">
        <b>Next step</b> <MessageText text={advice} />
        {href !== undefined && (
          <>
            {' '}
            <Link href={href}>Open the connection</Link>
          </>
        )}
      </p>
    </div>
  )
}
