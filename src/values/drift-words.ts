import type { SchemaDrift } from '../contract/index.ts'

export function driftWords({ database, member, kind, column, type, found }: SchemaDrift): string {
  switch (kind) {
    case 'conflict':
      return `${database}.${shownMember(member)}: a value of type ${found} does not fit the column of type ${type}; it is kept in _extra`
    case 'frozen':
      return `${database}.${shownMember(member)} is new (${found}) and the columns are frozen; it is kept in _extra`
    case 'taken':
      return `${database}.${shownMember(member)}: the table has a column of that name already; the member is in the column ${shownMember(column ?? '')}`
  }
}

const SHOWN_MAX = 64

export function shownMember(member: string): string {
  return member.length > SHOWN_MAX ? `${member.slice(0, SHOWN_MAX)}…` : member
}
