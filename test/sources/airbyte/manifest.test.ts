import { describe, expect, test } from 'vitest'
import { isSyncError } from '../../../src/contract/index.ts'
import { describeCoverage } from '../../../src/sources/airbyte/manifest/coverage.ts'
import { parseManifest } from '../../../src/sources/airbyte/manifest/manifest.ts'
import { checkSettings, listSecretPaths, requireSecretNames } from '../../../src/sources/airbyte/settings.ts'
import { manifestOf } from './shop.ts'

const TEXT = manifestOf(`
  - type: DeclarativeStream
    name: items
    $parameters: { path: /items, fields: [data, items] }
    retriever:
      requester: { $ref: '#/definitions/requester', http_method: POST }
      record_selector: { extractor: { field_path: "{{ parameters['fields'] }}" } }
      paginator:
        type: DefaultPaginator
        page_token_option: { type: RequestPath }
        pagination_strategy: { type: CursorPagination, cursor_value: "{{ response['next'] }}" }`)

describe('a manifest', () => {
  test('has its references replaced, its types added and its parameters passed down', () => {
    const [stream] = parseManifest(TEXT, 'manifest.yaml').streams
    expect(stream).toMatchObject({
      name: 'items',
      component: {
        retriever: {
          type: 'SimpleRetriever',
          requester: {
            type: 'HttpRequester',
            path: '/items',
            http_method: 'POST',
            url_base: 'https://shop.example/api',
          },
          record_selector: {
            type: 'RecordSelector',
            extractor: {
              type: 'DpathExtractor',
              field_path: "{{ parameters['fields'] }}",
              $parameters: { path: '/items' },
            },
          },
        },
      },
    })
  })

  test('with a reference that leads back to itself is refused', () => {
    const text = `version: 1.0.0\na: '#/b'\nb: '#/a'\nstreams: ['#/a']\n`
    expect(() => parseManifest(text, 'manifest.yaml')).toThrow(/leads back to itself/)
    expect(() => parseManifest(`streams: ['#/nowhere']`, 'manifest.yaml')).toThrow(/points to nothing/)
  })

  test('that is not YAML is refused with its line', () => {
    expect(() => parseManifest('streams:\n  - [1\n', 'manifest.yaml')).toThrow(/manifest\.yaml:\d+:\d+/)
  })

  test('with references that expand without end is refused in time', () => {
    const levels = Array.from({ length: 30 }, (_, at) => `l${at}: ['#/l${at + 1}', '#/l${at + 1}', '#/l${at + 1}']`)
    expect(() => parseManifest(`${levels.join('\n')}\nl30: x\nstreams: ['#/l0']\n`, 'm.yaml')).toThrow(/too many/)
  })

  test('that was damaged loads, or is refused with an error of ours', () => {
    const lines = TEXT.split('\n')
    for (let at = 0; at < lines.length; at += 2) {
      const variants = [
        lines.toSpliced(at, 1),
        lines.with(at, `  ${lines[at] ?? ''}`),
        lines.with(at, (lines[at] ?? '').replace(/:.*/, ':')),
        lines.with(at, (lines[at] ?? '').replace(/: .*/, ': 42')),
        lines.with(at, (lines[at] ?? '').replace(/: .*/, ': [[]]')),
        lines.with(at, (lines[at] ?? '').replace(/\{\{/g, '{{ (')),
      ]
      for (const variant of variants) {
        const text = variant.join('\n')
        try {
          const manifest = parseManifest(text, 'manifest.yaml')
          describeCoverage([{ file: 'manifest.yaml', text }])
          checkSettings(manifest, {})
        } catch (error) {
          expect(isSyncError(error), `${String(error)} for ${lines[at]}`).toBe(true)
        }
      }
    }
  })
})

describe('settings', () => {
  const manifest = parseManifest(
    manifestOf(`
  - { type: DeclarativeStream, name: items, retriever: { requester: { path: / } } }`).replace(
      '    properties:\n      api_key',
      '    required: [api_key, region]\n    properties:\n      region: { type: string, enum: [eu, us] }\n      api_key',
    ),
    'manifest.yaml',
  )

  test('get the defaults of the specification', () => {
    expect(checkSettings(manifest, { api_key: '${KEY}', region: 'eu' })).toMatchObject({ page_size: 2 })
  })

  test.each([
    [{ api_key: '${KEY}' }, /`region` is missing/],
    [{ api_key: '${KEY}', region: 'canary' }, /`region` must be equal to one of/],
    [{ api_key: '${KEY}', region: 'eu', page_size: 'x' }, /`page_size` must be integer/],
  ])('%j are refused without their values', (settings, message) => {
    expect(() => checkSettings(manifest, settings)).toThrow(message)
    expect(() => checkSettings(manifest, settings)).not.toThrow(/canary/)
  })

  test('hold secrets by name only', () => {
    expect(listSecretPaths(manifest.specification)).toEqual([['api_key']])
    expect(() => requireSecretNames(manifest, { api_key: 'canary' })).toThrow(/`settings.api_key` is a secret/)
    requireSecretNames(manifest, { api_key: '${KEY}' })
  })
})
