import type { Random } from './ports.ts'
import { required } from './required.ts'

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

export function randomText(random: Random, length: number, alphabet: string = BASE62): string {
  let text = ''
  for (let i = 0; i < length; i++)
    text += required(alphabet[Math.floor(random.next() * alphabet.length)], 'alphabet[…]')
  return text
}

export function randomHex(random: Random, length: number): string {
  return randomText(random, length, '0123456789abcdef')
}

export function randomUuid(random: Random): string {
  const hex = randomHex(random, 32)
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')
}

/** By code unit, which for ASCII is by byte. */
export function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
