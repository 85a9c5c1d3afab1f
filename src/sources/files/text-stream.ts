import { Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { readChunks, type OpenFile } from './folder.ts'
import { UnreadableFileError } from './row-reader.ts'

/**
 * Yields the bytes of a text from an offset, decompressed if needed. A compressed file is always decompressed from its
 * start.
 */
export async function* readTextChunks(file: OpenFile, isCompressed: boolean, offset: number): AsyncGenerator<Buffer> {
  if (!isCompressed) return yield* readChunks(file, offset)
  const compressed = Readable.from(readChunks(file))
  const gunzip = createGunzip()
  // A read error is not a fault of the file, so it is passed on unchanged.
  compressed.once('error', (error) => gunzip.destroy(error))
  compressed.pipe(gunzip)
  let skip = offset
  try {
    for await (const chunk of gunzip as AsyncIterable<Buffer>) {
      if (skip < chunk.length) yield skip === 0 ? chunk : chunk.subarray(skip)
      skip = Math.max(0, skip - chunk.length)
    }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code?.startsWith('Z_') === true)
      throw new UnreadableFileError(
        code === 'Z_BUF_ERROR' ? 'the compressed file is truncated' : `the compressed file is damaged (${code})`,
        { cause: error },
      )
    throw error
  } finally {
    compressed.destroy()
    gunzip.destroy()
  }
}
