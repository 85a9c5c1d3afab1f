export function chance(seed: number): () => number

export class World {
  constructor(options: { seed: number; keys: number })
  truth(step: number): Array<{ key: string; record: Record<string, unknown> }>
}
