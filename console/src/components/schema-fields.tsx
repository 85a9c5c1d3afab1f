import { useId } from 'react'
import { MessageText } from './query-states.tsx'

/** The keywords of a JSON Schema that a form shows. */
export interface FieldSchema {
  readonly type?: string | readonly string[]
  readonly enum?: readonly string[]
  readonly pattern?: string
  readonly description?: string
  readonly items?: FieldSchema
  readonly properties?: Readonly<Record<string, FieldSchema>>
  readonly required?: readonly string[]
  readonly oneOf?: ReadonlyArray<{ readonly required?: readonly string[] }>
}

/** Typed texts, by the path of the field. */
export type FieldTexts = Readonly<Record<string, string>>

interface FieldsProps {
  readonly path: string
  readonly schema: FieldSchema
  readonly texts: FieldTexts
  readonly onChange: (path: string, text: string) => void
}

/** The fields of an object. Required ones come first; the others are in a collapsed section. */
export function SchemaFields({ path, schema, texts, onChange }: FieldsProps) {
  const alternatives = schema.oneOf?.flatMap(({ required = [] }) => required) ?? []
  const first = new Set([...(schema.required ?? []), ...alternatives])
  const names = Object.keys(schema.properties ?? {})
  const others = names.filter((name) => !first.has(name))
  const field = (name: string) => (
    <SchemaField
      key={name}
      name={name}
      path={`${path}.${name}`}
      schema={schema.properties?.[name] ?? {}}
      isRequired={schema.required?.includes(name) ?? false}
      texts={texts}
      onChange={onChange}
    />
  )
  return (
    <>
      {alternatives.length > 0 && <p className="quiet">One of {alternatives.join(', ')} is required.</p>}
      {names.filter((name) => first.has(name)).map(field)}
      {others.length > 0 && (
        <details>
          <summary>
            Optional fields of {path} ({others.length})
          </summary>
          {others.map(field)}
        </details>
      )}
    </>
  )
}

function SchemaField({
  name,
  isRequired,
  ...fields
}: FieldsProps & { readonly name: string; readonly isRequired: boolean }) {
  const id = useId()
  const { path, schema, texts, onChange } = fields
  if (schema.properties !== undefined)
    return (
      <fieldset className="schema-group">
        <legend>{name}</legend>
        <SchemaFields {...fields} />
      </fieldset>
    )
  const choices = schema.enum ?? (schema.type === 'boolean' ? ['true', 'false'] : undefined)
  const props = {
    id,
    value: texts[path] ?? '',
    'aria-describedby': `${id}-help`,
    onChange: (event: { target: { value: string } }) => onChange(path, event.target.value),
  }
  return (
    <div className="schema-field">
      <label htmlFor={id}>
        {name} {isRequired && <span className="kind">required</span>}
      </label>
      {choices === undefined ? (
        <input {...props} type="text" spellCheck={false} autoComplete="off" />
      ) : (
        <select {...props}>
          <option value="">not set</option>
          {choices.map((choice) => (
            <option key={choice}>{choice}</option>
          ))}
        </select>
      )}
      <p id={`${id}-help`} className="quiet">
        <MessageText text={describeField(schema)} />
      </p>
    </div>
  )
}

function describeField(schema: FieldSchema): string {
  if (isSecret(schema)) return 'The name of an environment variable. Its value is not entered here.'
  const { description = '', type } = schema
  const format =
    type === 'array'
      ? isSimpleList(schema)
        ? 'Values separated by commas.'
        : 'A list in JSON.'
      : type === 'object' || type === undefined
        ? schema.enum === undefined
          ? 'Text or JSON.'
          : ''
        : type === 'integer' || type === 'number'
          ? 'A number.'
          : ''
  return [description === '' || description.endsWith('.') ? description : `${description}.`, format]
    .filter((part) => part !== '')
    .join(' ')
}

/** The value is a reference to a secret, `${NAME}`. */
export function isSecret({ pattern = '' }: FieldSchema): boolean {
  return pattern.startsWith('^\\$\\{')
}

function isSimpleList({ items }: FieldSchema): boolean {
  return items?.enum !== undefined || items?.type === 'string'
}

/** The value of a form. Empty fields are left out. */
export function readFields(schema: FieldSchema, texts: FieldTexts, path: string): Record<string, unknown> {
  const entries = Object.entries(schema.properties ?? {}).map(([name, field]) => [
    name,
    readField(field, texts, `${path}.${name}`),
  ])
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined))
}

function readField(schema: FieldSchema, texts: FieldTexts, path: string): unknown {
  if (schema.properties !== undefined) {
    const value = readFields(schema, texts, path)
    return Object.keys(value).length === 0 ? undefined : value
  }
  const text = (texts[path] ?? '').trim()
  if (text === '') return undefined
  if (isSecret(schema)) return `\${${text}}`
  if (schema.type === 'string' || schema.enum !== undefined) return text
  if (schema.type === 'array' && isSimpleList(schema))
    return text
      .split(',')
      .map((part) => part.trim())
      .filter((part) => part !== '')
  try {
    return JSON.parse(text) as unknown
  } catch {
    return text
  }
}
