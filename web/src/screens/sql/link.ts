export type Given = { statement: string; /** `owner/namespace`, or a namespace of the reader. */ namespace: string | undefined };

/** The statement that an address carries: after the #, which browsers do not send to servers, or in `q`. */
export function givenBy(search: { q?: string | undefined; namespace?: string | undefined }, hash: string): Given | undefined {
  const fields = new URLSearchParams(hash.replace(/^#/, ''));
  const statement = (fields.get('sql') ?? search.q)?.slice(0, 100_000);
  return statement ? { statement, namespace: fields.get('in') ?? search.namespace } : undefined;
}

/** An address that opens a statement. It runs nothing: the reader does, with their own rights. */
export function linkTo(origin: string, statement: string, namespace: string | undefined): string {
  return `${origin}/sql#${new URLSearchParams({ ...(namespace && { in: namespace }), sql: statement }).toString()}`;
}
