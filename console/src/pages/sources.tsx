import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import type { ManifestDraft, SourceForm } from '../../../src/config/manifest/source-forms.ts'
import { get, post } from '../api.ts'
import { Command } from '../components/command.tsx'
import { ErrorMessage, MessageText, QueryView } from '../components/query-states.tsx'
import { isSecret, readFields, SchemaFields, type FieldSchema, type FieldTexts } from '../components/schema-fields.tsx'

export function SourcesPage() {
  const sources = useQuery({
    queryKey: ['sources'],
    queryFn: ({ signal }) => get<{ data: SourceForm[] }>('/console/api/sources', signal),
    staleTime: Infinity,
  })
  const [name, setName] = useState('stripe')
  return (
    <>
      <h1>Sources</h1>
      <p className="quiet">
        Fill in the form of a source to get its manifest, <code>tidemark.yaml</code>. Nothing is stored, and no secret
        is entered here.
      </p>
      <QueryView of={sources}>
        {({ data }) => (
          <>
            <label className="field">
              Source{' '}
              <select value={name} onChange={(event) => setName(event.target.value)}>
                {data.map((source) => (
                  <option key={source.name} value={source.name}>
                    {source.title}
                  </option>
                ))}
              </select>
            </label>
            {data
              .filter((source) => source.name === name)
              .map((source) => (
                <SourceSection key={name} source={source} />
              ))}
          </>
        )}
      </QueryView>
    </>
  )
}

function SourceSection({ source }: { source: SourceForm }) {
  const config = source.config as FieldSchema
  const stream = source.stream as FieldSchema
  const [texts, setTexts] = useState<FieldTexts>({
    ...suggestSecrets(source.name, config),
    'stream.id': source.streamId,
  })
  const setText = (path: string, text: string): void => setTexts((before) => ({ ...before, [path]: text }))
  const request = {
    source: source.name,
    config: readFields(config, texts, 'config'),
    stream: readFields(stream, texts, 'stream'),
  }
  const draft = useQuery({
    queryKey: ['manifest', request],
    queryFn: () => post<{ data: ManifestDraft }>('/console/api/manifest', request),
    placeholderData: (before) => before,
    retry: false,
  })
  return (
    <div className="source-form">
      <form aria-label={`Configuration of ${source.title}`} onSubmit={(event) => event.preventDefault()}>
        <h2>config</h2>
        <SchemaFields path="config" schema={config} texts={texts} onChange={setText} />
        <h2>stream</h2>
        <SchemaFields path="stream" schema={stream} texts={texts} onChange={setText} />
      </form>
      <section aria-labelledby="manifest">
        <h2 id="manifest">tidemark.yaml</h2>
        <div role="status">
          {draft.error !== null ? (
            <ErrorMessage error={draft.error} />
          ) : (
            draft.data !== undefined && <DraftView draft={draft.data.data} />
          )}
        </div>
      </section>
    </div>
  )
}

function DraftView({ draft }: { draft: ManifestDraft }) {
  if (draft.manifest === null)
    return (
      <p className="field-error">
        <MessageText text={draft.error} />
      </p>
    )
  return (
    <>
      <Command label="Manifest" text={draft.manifest.trimEnd()} />
      {draft.secrets.length > 0 && (
        <>
          <h3>.env</h3>
          <Command label="Environment" text={draft.secrets.map((name) => `${name}=`).join('\n')} />
        </>
      )}
      <h3>Check it</h3>
      <Command label="Commands" text={'npx tidemark discover\nnpx tidemark run'} />
    </>
  )
}

/** Names for the required secrets, or those of the first alternative, such as STRIPE_API_KEY. */
function suggestSecrets(source: string, { properties = {}, required = [], oneOf = [] }: FieldSchema): FieldTexts {
  return Object.fromEntries(
    [...required, ...(oneOf[0]?.required ?? [])]
      .filter((name) => isSecret(properties[name] ?? {}))
      .map((name) => [`config.${name}`, `${source}_${name}`.replaceAll('-', '_').toUpperCase()]),
  )
}
