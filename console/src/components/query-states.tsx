import type { ReactNode } from 'react'
import { ApiError } from '../api.ts'

/** As tall as the expected content, to avoid layout shifts. */
export function Loading({ lines = 6, what = 'Loading' }: { lines?: number; what?: string }) {
  return (
    <div className="skeleton" role="status" aria-label={what}>
      {Array.from({ length: lines }, (_, at) => (
        <div key={at} className="skeleton-line" />
      ))}
    </div>
  )
}

export function EmptyState({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="empty">
      <svg className="empty-mark" viewBox="0 0 120 40" aria-hidden="true">
        <path d="M4 12h112" className="empty-line" />
        <path d="M0 30c10 0 10-6 20-6s10 6 20 6 10-6 20-6 10 6 20 6 10-6 20-6 10 6 20 6" className="empty-wave" />
      </svg>
      <h2>{title}</h2>
      {children !== undefined && <div className="empty-text">{children}</div>}
    </div>
  )
}

/** Renders text between backticks as code. */
export function MessageText({ text }: { text: string }) {
  return <>{text.split('`').map((part, index) => (index % 2 === 1 ? <code key={index}>{part}</code> : part))}</>
}

export function ErrorMessage({ error, onRetry }: { error: Error; onRetry?: () => void }) {
  if (error instanceof ApiError && error.code === 'FORBIDDEN')
    return (
      <EmptyState title="Not allowed for this key">
        <p>
          <MessageText text={error.message} />
        </p>
      </EmptyState>
    )
  const { code, requestId } = error instanceof ApiError ? error : { code: 'UNEXPECTED', requestId: null }
  return (
    <div className="failure" role="alert">
      <strong>{code === 'NOT_FOUND' ? 'Not found' : 'Could not load the data'}</strong>
      <p>
        <MessageText text={error.message} />
      </p>
      <p className="quiet">
        <code>{code}</code>
        {requestId !== null && (
          <>
            {' '}
            · request <code>{requestId}</code>
          </>
        )}
      </p>
      {onRetry !== undefined && (
        <button type="button" onClick={onRetry}>
          Try again
        </button>
      )}
    </div>
  )
}

interface QueryState<Data> {
  readonly data: Data | undefined
  readonly error: Error | null
  refetch(): unknown
}

/** Keeps the last data when a refetch fails; the header shows that it is stale. */
export function QueryView<Data>({
  of: query,
  lines,
  children,
}: {
  of: QueryState<Data>
  lines?: number
  children: (data: Data) => ReactNode
}) {
  if (query.data !== undefined) return <>{children(query.data)}</>
  if (query.error !== null) return <ErrorMessage error={query.error} onRetry={() => void query.refetch()} />
  return <Loading {...(lines !== undefined && { lines })} />
}
