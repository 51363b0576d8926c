export default function Upload() { return <p>Upload</p>; }
