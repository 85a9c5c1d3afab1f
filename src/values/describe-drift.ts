import type { SchemaDrift } from '../contract/index.ts'

export function describeDrift({ database, member, kind, column, type, found }: SchemaDrift): string {
  switch (kind) {
    case 'conflict':
      return `${database}.${truncateMember(member)}: a value of type ${found} does not fit the column of type ${type}; it is kept in _extra`
    case 'frozen':
      return `${database}.${truncateMember(member)} is new (${found}) and the columns are frozen; it is kept in _extra`
    case 'taken':
      return `${database}.${truncateMember(member)}: the table already has another column of that name; the field is in the column ${truncateMember(column ?? '')}`
  }
}

const MEMBER_LENGTH_MAX = 64

export function truncateMember(member: string): string {
  return member.length > MEMBER_LENGTH_MAX ? `${member.slice(0, MEMBER_LENGTH_MAX)}…` : member
}
