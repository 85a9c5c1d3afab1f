import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import type { ResetDocument, SyncDocument } from '../../../src/server/console/documents.ts'
import { path, post } from '../api.ts'
import { Dialog } from '../components/dialog.tsx'
import { ErrorMessage, Loading } from '../components/query-states.tsx'
import { formatBytes, pluralize } from '../format.ts'
import { useSession } from '../session.tsx'

export function SyncActions({ sync }: { sync: SyncDocument }) {
  const { hasScope } = useSession()
  const client = useQueryClient()
  const [isResetting, setIsResetting] = useState(false)
  const signal = useMutation({
    mutationFn: (kind: 'trigger' | 'pause' | 'resume') =>
      post(`${path`/api/syncs/${sync.worker}/${sync.sync}`}/${kind}`),
    onSuccess: () => client.invalidateQueries(),
  })
  const isPaused = sync.health === 'PAUSED'
  const isDisabled = !hasScope('sync:write') || signal.isPending
  const why = hasScope('sync:write') ? undefined : 'Requires the scope sync:write.'
  return (
    <div className="actions">
      <button
        type="button"
        className="primary"
        disabled={isDisabled || sync.triggeredAt !== null}
        title={why}
        onClick={() => signal.mutate('trigger')}
      >
        {sync.triggeredAt === null ? 'Run now' : 'Run requested'}
      </button>
      <button
        type="button"
        disabled={isDisabled}
        title={why}
        onClick={() => signal.mutate(isPaused ? 'resume' : 'pause')}
      >
        {isPaused ? 'Resume' : 'Pause'}
      </button>
      <button type="button" className="danger" disabled={isDisabled} title={why} onClick={() => setIsResetting(true)}>
        Reset…
      </button>
      {signal.error !== null && (
        <p className="field-error" role="alert">
          {signal.error.message}
        </p>
      )}
      {isResetting && <ResetDialog sync={sync} onClose={() => setIsResetting(false)} />}
    </div>
  )
}

/** Shows the plan first. The reset needs a reason and applies only to the version that the plan was made for. */
function ResetDialog({ sync, onClose }: { sync: SyncDocument; onClose: () => void }) {
  const client = useQueryClient()
  const [reason, setReason] = useState('')
  const [typed, setTyped] = useState('')
  const address = path`/console/api/syncs/${sync.worker}/${sync.sync}/reset`
  const plan = useMutation({ mutationFn: () => post<{ data: ResetDocument }>(address) })
  const reset = useMutation({
    mutationFn: (version: number) => post<{ data: ResetDocument }>(address, { version, reason }),
    onSuccess: () => client.invalidateQueries(),
  })
  if (plan.isIdle) plan.mutate()
  const planned = plan.data?.data
  const isReady = planned !== undefined && reason.trim() !== '' && typed === sync.sync && !reset.isPending
  if (reset.data !== undefined) {
    return (
      <Dialog title={`${sync.sync} was reset`} onClose={onClose}>
        <p>
          The sync is at version {reset.data.data.version} and has no state. The next cycle {reset.data.data.nextCycle}.
        </p>
      </Dialog>
    )
  }
  return (
    <Dialog
      title={`Reset ${sync.sync}`}
      onClose={onClose}
      actions={
        <button type="submit" form="reset" className="danger primary" disabled={!isReady}>
          Reset sync
        </button>
      }
    >
      {plan.error !== null ? (
        <ErrorMessage error={plan.error} />
      ) : planned === undefined ? (
        <Loading lines={4} />
      ) : (
        <form
          id="reset"
          onSubmit={(event) => {
            event.preventDefault()
            reset.mutate(planned.version)
          }}
        >
          <dl className="plan">
            <div>
              <dt>deletes</dt>
              <dd>
                {planned.forgets === null ? (
                  'nothing: the sync has no state'
                ) : (
                  <>
                    the state <code>#{planned.forgets.digest8}</code> ({formatBytes(planned.forgets.bytes)}) of version{' '}
                    {planned.version}; it remains in the history
                  </>
                )}
              </dd>
            </div>
            {planned.givesUp !== null && (
              <div>
                <dt>abandons</dt>
                <dd>
                  cycle {planned.givesUp.cycle}, unfinished after {pluralize(planned.givesUp.pages, 'page')}; its rows
                  remain
                </dd>
              </div>
            )}
            <div>
              <dt>keeps</dt>
              <dd>all rows and the whole log</dd>
            </div>
            <div>
              <dt>next cycle</dt>
              <dd>{planned.nextCycle}</dd>
            </div>
          </dl>
          {planned.heldBy !== null && (
            <p className="field-error">The sync is running. Pause it first, or wait until its cycle ends.</p>
          )}
          <label htmlFor="reset-reason">Reason (for the audit log)</label>
          <input
            id="reset-reason"
            required
            maxLength={1_000}
            value={reason}
            onChange={(event) => setReason(event.target.value)}
          />
          <label htmlFor="reset-name">
            Type <b>{sync.sync}</b> to confirm
          </label>
          <input id="reset-name" autoComplete="off" value={typed} onChange={(event) => setTyped(event.target.value)} />
          {reset.error !== null && (
            <p className="field-error" role="alert">
              {reset.error.message}
            </p>
          )}
        </form>
      )}
    </Dialog>
  )
}
