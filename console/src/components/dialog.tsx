import { useEffect, useId, useRef, type ReactNode } from 'react'

/** The native dialog keeps the focus inside and restores it. */
export function Dialog({
  title,
  onClose,
  children,
  actions,
}: {
  title: string
  onClose: () => void
  children: ReactNode
  actions?: ReactNode
}) {
  const dialog = useRef<HTMLDialogElement>(null)
  const id = useId()
  useEffect(() => {
    dialog.current?.showModal()
  }, [])
  return (
    <dialog
      ref={dialog}
      aria-labelledby={id}
      onClose={onClose}
      onClick={(event) => event.target === dialog.current && dialog.current.close()}
    >
      <div className="dialog-body">
        <h2 id={id}>{title}</h2>
        {children}
        <div className="dialog-actions">
          <button type="button" onClick={() => dialog.current?.close()}>
            Close
          </button>
          {actions}
        </div>
      </div>
    </dialog>
  )
}
