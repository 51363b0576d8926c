import { queryOptions } from '@tanstack/react-query';
import type { Column } from './complete';
import { query } from './runs';

const literal = (text: string) => `'${text.replaceAll("'", "''")}'`;

/** The columns of all datasets of a namespace by the name of the dataset, in one request. */
export const columnsOf = (owner: string, namespace: string) =>
  queryOptions({
    queryKey: ['columns', owner, namespace],
    staleTime: 60_000,
    queryFn: async ({ signal }) => {
      const statement = `SELECT table_name, column_name, data_type FROM information_schema.columns WHERE table_catalog = ${literal(owner)} AND table_schema = ${literal(namespace)} ORDER BY table_name, ordinal_position LIMIT 100000`;
      const { data } = await query({ query: statement }, signal);
      const found = new Map<string, Column[]>();
      for (const row of data as { table_name: string; column_name: string; data_type: string }[]) {
        const columns = found.get(row.table_name) ?? [];
        columns.push({ name: row.column_name, type: row.data_type });
        found.set(row.table_name, columns);
      }
      return found;
    },
  });
