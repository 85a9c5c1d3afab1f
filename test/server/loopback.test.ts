import { describe, expect, test } from 'vitest'
import { isLocalRequest } from '../../src/server/loopback.ts'

describe('a request counts as local', () => {
  test.each([
    { host: 'localhost:8080' },
    { host: '127.0.0.1:8080' },
    { host: '[::1]:8080' },
    { host: 'localhost:8080', origin: 'http://localhost:8080', 'sec-fetch-site': 'same-origin' },
  ])('%j: yes', (headers) => {
    expect(isLocalRequest(headers)).toBe(true)
  })

  test.each([
    'forwarded',
    'via',
    'x-forwarded-for',
    'x-forwarded-host',
    'x-forwarded-proto',
    'x-real-ip',
    'cf-connecting-ip',
    'true-client-ip',
  ])('not through a proxy, which says so with the header %s', (header) => {
    expect(isLocalRequest({ host: 'localhost:8080', [header]: '203.0.113.7' })).toBe(false)
  })

  test.each([
    {},
    { host: 'example.com' },
    { host: 'localhost.example.com:8080' },
    { host: '127.0.0.1.example.com' },
    { host: 'localhost:8080', origin: 'https://example.com' },
    { host: 'localhost:8080', origin: 'http://localhost:9090' },
    { host: 'localhost:8080', 'sec-fetch-site': 'cross-site' },
    { host: 'localhost:8080', 'sec-fetch-site': 'same-site' },
  ])('not under another name, nor from the page of another origin: %j', (headers) => {
    expect(isLocalRequest(headers)).toBe(false)
  })
})
