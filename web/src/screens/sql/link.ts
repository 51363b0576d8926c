export type Given = { statement: string | undefined; /** `owner/namespace`, or a namespace of the reader. */ namespace: string | undefined };

/** What an address carries: after the #, which browsers do not send to servers, or in `q` and `namespace`. */
export function givenBy(search: { q?: string | undefined; namespace?: string | undefined }, hash: string): Given | undefined {
  const fields = new URLSearchParams(hash.replace(/^#/, ''));
  const statement = (fields.get('sql') ?? search.q)?.slice(0, 100_000) || undefined;
  const namespace = fields.get('in') ?? search.namespace;
  return statement || namespace ? { statement, namespace } : undefined;
}

/** An address that opens a statement. It runs nothing: the reader does, with their own rights. */
export function linkTo(origin: string, statement: string, namespace: string | undefined): string {
  return `${origin}/sql#${new URLSearchParams({ ...(namespace && { in: namespace }), sql: statement }).toString()}`;
}
