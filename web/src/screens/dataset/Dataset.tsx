export default function Dataset() { return <p>Dataset</p>; }
