import { describe, expect, test } from 'vitest'
import { parseXml, parseXmlTags } from '../../../src/sources/kit/xml.ts'

describe('an XML document', () => {
  test('has tags with attributes, and the text before each', () => {
    expect([...parseXmlTags('<?xml version="1.0"?><a:b c:d="1"> x <!-- no --><![CDATA[<y>]]><e/>z</a:b> ')]).toEqual([
      { name: 'a:b', kind: 'open', attributes: [['c:d', '1']], textBefore: '' },
      { name: 'e', kind: 'empty', attributes: [], textBefore: ' x <y>' },
      { name: 'a:b', kind: 'close', attributes: [], textBefore: 'z' },
    ])
  })

  test('references to characters are read once, and only those that XML itself defines', () => {
    const [tag] = parseXmlTags('<a d="&amp;lt; &#65;&#x42; &quot;&apos; &own; &#x110000;"/>')
    expect(tag?.attributes).toEqual([['d', '&lt; AB "\' &own; &#x110000;']])
  })

  test('is an object of its elements; repeated ones are a list, and an empty one is what the caller chooses', () => {
    const xml = '<r><i id="1"><n>A &amp; B</n></i><i id="2">t<n/></i><__proto__>x</__proto__></r>'
    expect(JSON.stringify(parseXml(xml))).toBe(
      '{"r":{"i":[{"@id":"1","n":"A & B"},{"@id":"2","n":"","#text":"t"}],"__proto__":"x"}}',
    )
    expect(parseXml('<r><n/><e></e></r>', { empty: null })).toEqual({ r: { n: null, e: null } })
  })

  test.each([
    ['a document type', '<!DOCTYPE r [<!ENTITY x "y">]><r/>'],
    ['elements that are not closed', '<r><i>'],
    ['elements that are closed in another order', '<r><i></r></i>'],
    ['half a section', '<r><![CDATA[x</r>'],
    ['text after the document', '<r/>x'],
    ['two documents', '<r/><s/>'],
    ['no element', ' '],
    ['a very deep document', '<a>'.repeat(300) + '</a>'.repeat(300)],
  ])('with %s is refused', (_, xml) => {
    expect(() => parseXml(xml)).toThrow(expect.objectContaining({ code: 'SOURCE_INVALID' }))
  })
})
