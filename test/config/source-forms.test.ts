import { describe, expect, test } from 'vitest'
import { draftManifest, listSourceForms } from '../../src/config/manifest/source-forms.ts'
import { SOURCES } from '../../src/sources/registry.ts'

describe('the forms of the sources', () => {
  test('there is one for every source of the registry, with the schemas of its descriptor', () => {
    const forms = listSourceForms()
    expect(forms.map(({ name }) => name).toSorted()).toEqual(Object.keys(SOURCES).toSorted())
    for (const { name, config, stream } of forms) {
      expect(config).toBe(SOURCES[name].config)
      expect((stream['properties'] as Record<string, unknown>)['options']).toBe(SOURCES[name].streams.options)
    }
  })

  test('a field that the source sets itself is not asked for', () => {
    const fieldsOf = (wanted: string): string[] =>
      Object.keys(listSourceForms().find(({ name }) => name === wanted)!.stream['properties'] as object)
    expect(fieldsOf('stripe')).not.toContain('cursor')
    expect(fieldsOf('sql')).toContain('cursor')
    expect(fieldsOf('sql')).not.toContain('state_handling')
  })

  test('a valid form becomes a manifest that names its secrets', () => {
    const { manifest, secrets, error } = draftManifest('stripe', { api_key: '${KEY}' }, { id: 'customers' })
    expect(manifest).toBe('connector: stripe\nconfig:\n  api_key: ${KEY}\nstreams:\n  - id: customers\n')
    expect([secrets, error]).toEqual([['KEY'], null])
  })

  test.each([
    ['a missing field', {}, { id: 'customers' }, /config: `api_key` is missing/],
    ['a misspelt field', { api_kye: '${KEY}' }, { id: 'customers' }, /unknown field "api_kye". Did you mean/],
    ['a stream without an id', { api_key: '${KEY}' }, {}, /`id` is missing/],
  ])('%s is reported as `tidemark run` reports it', (_, config, stream, message) => {
    expect(draftManifest('stripe', config, stream)).toMatchObject({
      manifest: null,
      error: expect.stringMatching(/^tidemark\.yaml:\d+:\d+: /),
    })
    expect(draftManifest('stripe', config, stream).error).toMatch(message)
  })

  test('a secret that was entered as a value is neither accepted nor returned', () => {
    const draft = draftManifest('stripe', { api_key: 'sk_live_canary' }, { id: 'customers' })
    expect(draft.error).toMatch(/a secret: write \$\{NAME\} here/)
    expect(JSON.stringify(draft)).not.toContain('canary')
  })
})
