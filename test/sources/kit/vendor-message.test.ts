import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { JsonValue } from '../../../src/contract/index.ts'
import { extractVendorMessage } from '../../../src/sources/kit/vendor-message.ts'

describe("a vendor's explanation of a failed request", () => {
  test.each<[string, JsonValue, string]>([
    [
      'Salesforce',
      [{ message: "No such column 'Foo__c' on entity 'Account'.", errorCode: 'INVALID_FIELD' }],
      "INVALID_FIELD: No such column 'Foo__c' on entity 'Account'.",
    ],
    [
      'Stripe',
      { error: { type: 'invalid_request_error', message: 'Received unknown parameter: expnad' } },
      'Received unknown parameter: expnad',
    ],
    [
      'HubSpot',
      { status: 'error', message: 'Property "nme" does not exist', category: 'VALIDATION_ERROR' },
      'Property "nme" does not exist',
    ],
    [
      'ServiceNow',
      { error: { message: 'Invalid table foo', detail: 'No such table' }, status: 'failure' },
      'Invalid table foo: No such table',
    ],
    [
      'OAuth',
      { error: 'invalid_grant', error_description: 'Token has been revoked' },
      'invalid_grant: Token has been revoked',
    ],
    [
      'GraphQL',
      { errors: [{ message: "Field 'nme' doesn't exist on type 'User'" }] },
      "Field 'nme' doesn't exist on type 'User'",
    ],
    [
      'Airtable',
      { error: { type: 'UNKNOWN_FIELD_NAME', message: 'Unknown field name: "x"' } },
      'Unknown field name: "x"',
    ],
    [
      'OData',
      { error: { code: '0x1', message: 'The property Nme does not exist' } },
      'The property Nme does not exist',
    ],
    ['Kraken', { error: ['EAPI:Invalid nonce'] }, 'EAPI:Invalid nonce'],
    [
      'a problem document',
      { title: 'Bad Request', detail: 'limit must be at most 100', status: 400 },
      'limit must be at most 100',
    ],
    ['X', { title: 'Unauthorized', errors: [{ message: 'ignored' }], detail: 'Unauthorized' }, 'Unauthorized'],
  ])('of %s is shown', (_, body, expected) => {
    expect(extractVendorMessage(body, [])).toBe(expected)
  })

  test.each<[string, JsonValue | undefined]>([
    ['no body', undefined],
    ['null', null],
    ['a number', 7],
    ['an empty list', []],
    ['records', { results: [{ name: 'Ada' }] }],
  ])('is null for %s', (_, body) => {
    expect(extractVendorMessage(body, [])).toBeNull()
  })

  test('Z16 quotes neither sent ids, cursors and times, nor anything that looks like a token', () => {
    const sent = ['cus_N1ck', '2026-01-31T12:00:00Z', 'customers', 'email']
    expect(
      extractVendorMessage(
        { message: 'No such customers: cus_N1ck after 2026-01-31T12:00:00Z; email is unknown' },
        sent,
      ),
    ).toBe('No such customers: … after …; email is unknown')
    expect(extractVendorMessage({ message: 'Bad cursor eyJpZCI6MTIzNDU2Nzg5MCwidCI6MX0' }, [])).toBe('Bad cursor …')
    expect(extractVendorMessage({ message: 'eyJpZCI6MTIzNDU2Nzg5MCwidCI6MX0' }, [])).toBeNull()
  })

  test('is one short printable line, whatever the vendor sends', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 2_000 }), (message) => {
        const shown = extractVendorMessage({ message }, [])
        if (shown === null) return
        expect(shown).not.toMatch(/[\p{Cc}\p{Cf}]/u)
        expect(shown.isWellFormed()).toBe(true)
        expect(shown.length).toBeLessThanOrEqual(301)
      }),
    )
    fc.assert(fc.property(fc.jsonValue(), (body) => void extractVendorMessage(body as JsonValue, [])))
  })
})
