/** The files of a drop, those in folders too, without the hidden ones that systems leave there. */
export async function droppedFiles(data: DataTransfer): Promise<File[]> {
  // The list of items is emptied when the event ends, so the entries are taken first.
  const entries = [...data.items].map((item) => item.webkitGetAsEntry()).filter((entry) => entry !== null);
  if (entries.length === 0) return [...data.files];
  const found = await Promise.all(entries.map(walk));
  return found.flat().filter((file) => !file.name.startsWith('.') && file.name !== 'Thumbs.db');
}

async function walk(entry: FileSystemEntry): Promise<File[]> {
  if (entry.isFile) return [await new Promise<File>((resolve, reject) => (entry as FileSystemFileEntry).file(resolve, reject))];
  const reader = (entry as FileSystemDirectoryEntry).createReader();
  const all: FileSystemEntry[] = [];
  for (;;) {
    // A reader gives its entries in portions.
    const some = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
    if (some.length === 0) break;
    all.push(...some);
  }
  return (await Promise.all(all.map(walk))).flat();
}
