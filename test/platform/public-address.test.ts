import { expect, test } from 'vitest'
import { isPublicAddress, isPublicHost } from '../../src/platform/public-address.ts'

test.each([
  'localhost',
  'LOCALHOST',
  'localhost.',
  'api.localhost',
  'printer.local',
  'metadata.google.internal',
  'metadata.google.internal.',
  'host.localdomain',
  'router.home.arpa',
  'intranet',
  'db',
  '127.0.0.1',
  '169.254.169.254',
  '10.1.2.3',
  '[::1]',
  '[fd00::1]',
  '[::ffff:10.0.0.1]',
  '[64:ff9b::a00:1]',
  '',
])('%s is not a public host', (host) => {
  expect(isPublicHost(host)).toBe(false)
})

test.each([
  'api.example.com',
  'api.example.com.',
  'localhost.example.com',
  'internal.example.com',
  '93.184.216.34',
  '[2606:4700::1111]',
])('%s may be a public host', (host) => {
  expect(isPublicHost(host)).toBe(true)
})

test.each(['fe80::1%eth0', '2606:4700::1111%eth0', 'example.com', '1.2.3', '100.64.0.1', '100.127.255.255'])(
  '%s is not a public address',
  (address) => {
    expect(isPublicAddress(address)).toBe(false)
  },
)
