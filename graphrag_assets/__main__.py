from graphrag_assets.cli import main

main()
