import { expect, test } from 'vitest'
import { redactState, redactTidemark } from '../../src/redaction/redact-state.ts'

test('a tidemark is shown if it is a time; a cursor only as a digest, unless it may be revealed', () => {
  expect(redactTidemark('2026-01-01T00:00:00.000000Z', false)).toBe('2026-01-01T00:00:00.000000Z')
  expect(redactTidemark('cursor-7', false)).toMatch(/^#[0-9a-f]{8}$/)
  expect(redactTidemark('cursor-7', true)).toBe('cursor-7')
  expect(redactTidemark(null, false)).toBeNull()
})

test('a state is shown only by its digest and its size', () => {
  expect(redactState('{"token":"é"}')).toEqual({ digest8: expect.stringMatching(/^[0-9a-f]{8}$/), bytes: 14 })
  expect(redactState(null)).toBeNull()
})
