import { describe } from 'vitest'
import { expectMutantsFound } from './expect-mutants-found.ts'
import { MUTANTS } from './mutants.ts'

describe('the simulation finds planted bugs', () => expectMutantsFound(MUTANTS))
