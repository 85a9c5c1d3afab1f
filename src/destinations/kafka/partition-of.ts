import { loadKafkajs } from '../../sources/kafka/connect.ts'

/** The partition of a key among a number of partitions. */
export type PartitionOf = (key: string, partitions: number) => number

/** By murmur2, like the default partitioner of Java: another producer with the same key uses the same partition. */
export async function createPartitionOf(): Promise<PartitionOf> {
  const { Partitioners } = await loadKafkajs()
  const partitioner = Partitioners.DefaultPartitioner()
  const metadataOf = new Map<number, Parameters<typeof partitioner>[0]['partitionMetadata']>()
  return (key, partitions) => {
    if (partitions <= 1) return 0
    let partitionMetadata = metadataOf.get(partitions)
    if (partitionMetadata === undefined) {
      partitionMetadata = Array.from({ length: partitions }, (_, partitionId) => ({
        partitionId,
        partitionErrorCode: 0,
        leader: 0,
        replicas: [],
        isr: [],
      }))
      metadataOf.set(partitions, partitionMetadata)
    }
    return partitioner({ topic: '', partitionMetadata, message: { key, value: null } })
  }
}
