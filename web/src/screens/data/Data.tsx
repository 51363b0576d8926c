export default function Data() { return <p>Data</p>; }
