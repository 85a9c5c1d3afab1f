import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useId, useState } from 'react'
import type { ConnectionDocument, ProviderDocument, ProviderField } from '../../../src/server/console/documents.ts'
import { patch, path, post } from '../api.ts'
import { Dialog } from '../components/dialog.tsx'
import { MessageText } from '../components/query-states.tsx'

/** A new connection by the form of its provider, or new credentials for one. */
export function ConnectionFormDialog({
  providers,
  replaces,
  onClose,
}: {
  providers: readonly ProviderDocument[]
  replaces?: ConnectionDocument
  onClose: () => void
}) {
  const client = useQueryClient()
  const withForm = providers.filter(({ form }) => form !== null)
  const [chosen, setChosen] = useState(replaces?.provider ?? withForm[0]?.name ?? '')
  const [name, setName] = useState('')
  const [texts, setTexts] = useState<Readonly<Record<string, string>>>({})
  const provider = withForm.find((one) => one.name === chosen)
  const form = provider?.form
  const save = useMutation({
    mutationFn: () => {
      const read = (fields: readonly ProviderField[], kind: string): Record<string, string> =>
        Object.fromEntries(
          fields.flatMap((field) => {
            const text = (texts[`${chosen} ${kind} ${field.name}`] ?? '').trim()
            return text === '' ? [] : [[field.name, text]]
          }),
        )
      const credentials = { kind: form?.kind, secrets: read(form?.secrets ?? [], 'secret') }
      const settings = read(form?.settings ?? [], 'setting')
      return replaces === undefined
        ? post('/api/connections', {
            provider: chosen,
            ...(name.trim() !== '' && { name: name.trim() }),
            ...credentials,
            settings,
          })
        : patch(path`/api/connections/${replaces.name}`, credentials)
    },
    onSuccess: async () => {
      await client.invalidateQueries()
      onClose()
    },
    // The secrets are not kept.
    gcTime: 0,
  })
  const field = (kind: 'secret' | 'setting') => (one: ProviderField) => (
    <Field
      key={`${chosen} ${one.name}`}
      field={one}
      value={texts[`${chosen} ${kind} ${one.name}`] ?? ''}
      onChange={(text) => setTexts((before) => ({ ...before, [`${chosen} ${kind} ${one.name}`]: text }))}
    />
  )
  return (
    <Dialog
      title={replaces === undefined ? 'New connection' : `Replace the credentials of ${replaces.name}`}
      onClose={onClose}
      actions={
        <button type="submit" form="connection" className="primary" disabled={form == null || save.isPending}>
          {replaces === undefined ? 'Add connection' : 'Replace credentials'}
        </button>
      }
    >
      <form
        id="connection"
        onSubmit={(event) => {
          event.preventDefault()
          save.mutate()
        }}
      >
        {replaces === undefined && (
          <>
            <label htmlFor="connection-provider">Vendor</label>
            <select id="connection-provider" value={chosen} onChange={(event) => setChosen(event.target.value)}>
              {withForm.map((one) => (
                <option key={one.name} value={one.name}>
                  {one.title}
                </option>
              ))}
            </select>
            <label htmlFor="connection-name">
              Name <span className="kind">as syncs name it; by default {chosen}</span>
            </label>
            <input
              id="connection-name"
              autoComplete="off"
              spellCheck={false}
              maxLength={63}
              value={name}
              onChange={(event) => setName(event.target.value)}
            />
          </>
        )}
        {form != null && provider !== undefined && (
          <>
            <ol className="notes steps">
              {form.steps.map((step) => (
                <li key={step}>
                  <MessageText text={step} />
                </li>
              ))}
            </ol>
            {form.secrets.map(field('secret'))}
            {replaces === undefined && form.settings.map(field('setting'))}
            <p className="quiet">
              The credentials are sealed before they are stored. They are sent to {provider.title} only.
            </p>
          </>
        )}
        {save.error !== null && (
          <p className="field-error" role="alert">
            <MessageText text={save.error.message} />
          </p>
        )}
      </form>
    </Dialog>
  )
}

function Field({
  field: { label, hint, example, isSecret, isRequired },
  value,
  onChange,
}: {
  field: ProviderField
  value: string
  onChange: (text: string) => void
}) {
  const id = useId()
  return (
    <div className="schema-field">
      <label htmlFor={id}>
        {label} {!isRequired && <span className="kind">optional</span>}
      </label>
      <input
        id={id}
        type={isSecret ? 'password' : 'text'}
        autoComplete="off"
        spellCheck={false}
        required={isRequired}
        placeholder={example ?? ''}
        value={value}
        onChange={(event) => onChange(event.target.value)}
        aria-describedby={hint === null ? undefined : `${id}-hint`}
      />
      {hint !== null && (
        <p id={`${id}-hint`} className="quiet">
          {hint}
        </p>
      )}
    </div>
  )
}
