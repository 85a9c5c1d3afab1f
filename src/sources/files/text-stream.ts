import { Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { readChunks, type OpenFile } from './folder.ts'
import { UnreadableFileError } from './row-reader.ts'

/** The bytes of a text from an offset on, unpacked when they are packed. A packed file has to be unpacked from its beginning. */
export async function* readTextChunks(file: OpenFile, isPacked: boolean, offset: number): AsyncGenerator<Buffer> {
  if (!isPacked) return yield* readChunks(file, offset)
  const packed = Readable.from(readChunks(file))
  const unpacked = createGunzip()
  // A failed read is not a fault of the file, and must arrive as itself.
  packed.once('error', (error) => unpacked.destroy(error))
  packed.pipe(unpacked)
  let skip = offset
  try {
    for await (const chunk of unpacked as AsyncIterable<Buffer>) {
      if (skip < chunk.length) yield skip === 0 ? chunk : chunk.subarray(skip)
      skip = Math.max(0, skip - chunk.length)
    }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code?.startsWith('Z_') === true) throw new UnreadableFileError(code === 'Z_BUF_ERROR' ? 'the packed file ends early' : `the packed file is damaged (${code})`, { cause: error })
    throw error
  } finally {
    packed.destroy()
    unpacked.destroy()
  }
}
