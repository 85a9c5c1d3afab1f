import { useState } from 'react'

/** A command to copy. */
export function Command({ text, label }: { text: string; label: string }) {
  const [copied, setCopied] = useState(false)
  const copy = (): void => {
    navigator.clipboard
      ?.writeText(text)
      .then(() => setCopied(true))
      .catch(() => {})
    setTimeout(() => setCopied(false), 2_000)
  }
  return (
    <div className="command">
      <pre tabIndex={0} aria-label={label}>
        <code>{text}</code>
      </pre>
      <button type="button" className="small" onClick={copy} aria-label={`Copy: ${label}`}>
        {copied ? 'Copied' : 'Copy'}
      </button>
    </div>
  )
}
