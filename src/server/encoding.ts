import { brotliCompress, constants, gzip } from 'node:zlib'
import { promisify } from 'node:util'

export type Encoding = 'br' | 'gzip'

const COMPRESSION_LEVEL = 4

/** Smaller bodies are not worth compressing. */
export const COMPRESS_MIN_BYTES = 2_048

/** Returns the best encoding that the header allows; null to send the body uncompressed. */
export function chooseEncoding(header: string | undefined, bytes: number): Encoding | null {
  if (header === undefined || bytes < COMPRESS_MIN_BYTES) return null
  const offered = new Map(
    header
      .toLowerCase()
      .split(',')
      .map((part): [string, boolean] => {
        const [name = '', ...parameters] = part.split(';').map((text) => text.trim())
        return [name, !parameters.some((text) => /^q=0(?:\.0*)?$/.test(text))]
      }),
  )
  for (const encoding of ['br', 'gzip'] as const)
    if (offered.get(encoding) ?? offered.get('*') ?? false) return encoding
  return null
}

/** Runs in the thread pool. */
export function compressBody(body: Buffer, encoding: Encoding): Promise<Buffer> {
  return encoding === 'br'
    ? brotli(body, {
        params: {
          [constants.BROTLI_PARAM_QUALITY]: COMPRESSION_LEVEL,
          [constants.BROTLI_PARAM_SIZE_HINT]: body.length,
        },
      })
    : zip(body, { level: COMPRESSION_LEVEL })
}

const brotli = promisify<Buffer, object, Buffer>(brotliCompress)
const zip = promisify<Buffer, object, Buffer>(gzip)
