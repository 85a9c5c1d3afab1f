/**
 * Possible disk contents after a power cut: everything that was synced, and any part of the rest. A write of several
 * sectors may have reached the disk in some of them; names appear and disappear in order.
 */

const SECTOR = 512
const HEAD = 24
const KINDS = ['', 'opened', 'written', 'synced', 'cut', 'removed', 'folderSynced'] as const

export interface Operation {
  readonly kind: (typeof KINDS)[number]
  readonly name: string
  readonly offset: number
  readonly data: Buffer
}

/** As children/recorder.c wrote it. */
export function parseRecord(record: Buffer): Operation[] {
  const operations: Operation[] = []
  for (let at = 0; at < record.length;) {
    const kind = KINDS[record.readUInt32LE(at)]!
    const nameEnd = at + HEAD + record.readUInt32LE(at + 4)
    const end = nameEnd + Number(record.readBigUInt64LE(at + 16))
    operations.push({
      kind,
      name: record.toString('utf8', at + HEAD, nameEnd),
      offset: Number(record.readBigUInt64LE(at + 8)),
      data: record.subarray(nameEnd, end),
    })
    at = end
  }
  return operations
}

/** The files when all writes have reached the disk. */
export function replayAll(operations: readonly Operation[]): Map<string, Buffer> {
  const disk = new Disk()
  for (const operation of operations) disk.do(operation)
  return disk.kept()
}

/**
 * The files after this many cuts, each of which keeps the operations before some point and none after it. From the
 * first point to the last.
 */
export function* cutPower(
  operations: readonly Operation[],
  count: number,
  random: () => number,
): Generator<{ at: number; image: Map<string, Buffer> }> {
  const places = Array.from({ length: count }, () => 1 + Math.floor(random() * operations.length)).toSorted(
    (a, b) => a - b,
  )
  const disk = new Disk()
  let done = 0
  for (const at of places) {
    for (; done < at; done++) disk.do(operations[done]!)
    yield { at, image: disk.cut(random) }
  }
}

/** A file, apart from its name. */
class File {
  #durable: Buffer = Buffer.alloc(0)
  #pending: Operation[] = []

  do(operation: Operation): void {
    if (operation.kind === 'synced') {
      this.#durable = this.kept()
      this.#pending = []
    } else this.#pending.push(operation)
  }

  kept(): Buffer {
    return this.#pending.reduce<Buffer>(applied, this.#durable)
  }

  cut(random: () => number): Buffer {
    let content = Buffer.from(this.#durable)
    const lost = random()
    for (const operation of this.#pending) {
      const draw = random()
      if (draw < lost) continue
      content =
        operation.kind === 'written' && draw < lost + (1 - lost) / 3
          ? torn(content, operation, random)
          : applied(content, operation)
    }
    return content
  }
}

class Disk {
  readonly #files = new Map<string, File>()
  /** Names that are certain to be durable. */
  #durable = new Map<string, File>()
  #pending: Array<Map<string, File>> = []

  do(operation: Operation): void {
    switch (operation.kind) {
      case 'opened':
        if (this.#files.has(operation.name)) return
        this.#files.set(operation.name, new File())
        return void this.#pending.push(new Map(this.#files))
      case 'removed':
        this.#files.delete(operation.name)
        return void this.#pending.push(new Map(this.#files))
      case 'folderSynced':
        this.#durable = new Map(this.#files)
        this.#pending = []
        return
      default:
        this.#files.get(operation.name)?.do(operation)
    }
  }

  kept(): Map<string, Buffer> {
    return new Map([...this.#files].map(([name, file]) => [name, file.kept()]))
  }

  cut(random: () => number): Map<string, Buffer> {
    const names = [this.#durable, ...this.#pending][Math.floor(random() * (this.#pending.length + 1))]!
    return new Map([...names].map(([name, file]) => [name, file.cut(random)]))
  }
}

function applied(content: Buffer, { kind, offset, data }: Operation): Buffer<ArrayBuffer> {
  const length = kind === 'cut' ? offset : Math.max(content.length, offset + data.length)
  const after = Buffer.alloc(length)
  content.copy(after, 0, 0, Math.min(content.length, length))
  data.copy(after, offset)
  return after
}

function torn(content: Buffer, operation: Operation, random: () => number): Buffer<ArrayBuffer> {
  let after = Buffer.from(content)
  const { offset, data } = operation
  for (let from = 0; from < data.length;) {
    const to = Math.min(data.length, from + SECTOR - ((offset + from) % SECTOR))
    if (random() < 0.5) after = applied(after, { ...operation, offset: offset + from, data: data.subarray(from, to) })
    from = to
  }
  return after
}
